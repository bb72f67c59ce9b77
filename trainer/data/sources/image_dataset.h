#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/files/storage.h"
#include "trainer/data/images/corrupt_samples.h"
#include "trainer/data/images/image_set.h"
#include "trainer/data/sources/dataset.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// The labels that images have.
struct ImageLabels {
  compute::LabelKind kind = compute::LabelKind::classes;  // or objects
  int64_t classes = 0;                                    // 0: the largest label decides the number
  std::vector<std::string> names;  // names of the classes, in order; empty: no names
};

// Samples that are decoded from JPEG and PNG for each use. The encoded bytes are in memory, or stay
// in their files until they are used.
class ImageDataset : public Dataset {
 public:
  // Reads all images that are kept in memory. Also reads the other images if neither their labels
  // nor the number of classes are known without reading. Throws Invalid if too many images cannot
  // be read.
  ImageDataset(std::unique_ptr<ImageSet> images, const spec::ImageSettings& settings,
               ImageLabels labels, bool in_memory, std::unique_ptr<CorruptSamples> corrupt);

  void require_objects() const override;
  int32_t label(uint64_t sample) const override;
  std::string describe(uint64_t sample) const override { return images_->name(sample); }
  // Makes the sample or, if it is damaged, the next undamaged sample of its shard. So neither the
  // epoch's order nor any other sample depends on the thread that finds the damage.
  void fill(const Use& use, const Augmentation& augmentation, Sample& workspace,
            Row& row) const override;

 private:
  struct Bytes {
    uint64_t begin = 0;
    uint64_t size = 0;  // 0: not kept
  };
  bool has_objects() const { return label_kind() == compute::LabelKind::objects; }
  void begin(uint64_t index, Sample& sample) const;
  void write_objects(Sample& sample, float* target) const;
  void read_all(int64_t classes, bool keep);
  bool shows_object() const;
  void tell(const BoxReport& boxes) const;
  std::string first_name() const;  // for messages about all samples

  const std::unique_ptr<ImageSet> images_;
  // Empty: labels are objects, or are known only when an image is read.
  std::vector<int32_t> labels_;
  Storage kept_;
  std::vector<Bytes> places_;                           // places of the images in kept_
  std::vector<std::vector<images::Box>> kept_objects_;  // objects of the images in kept_
  std::optional<BoxReport> boxes_;                      // set if it is known for all images
  const std::unique_ptr<CorruptSamples> corrupt_;
};

}  // namespace muster::data
