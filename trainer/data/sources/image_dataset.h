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

  uint64_t size() const override { return images_->size(); }
  const std::vector<int64_t>& sample_shape() const override { return shape_; }
  compute::LabelKind label_kind() const override { return label_kind_; }
  int64_t label_count() const override;
  int64_t object_classes() const override { return has_objects() ? classes_ : 0; }
  std::vector<std::string> class_names() const override { return class_names_; }
  compute::ElementType element_type() const override { return compute::ElementType::uint8; }
  float scale() const override { return settings_.scale; }
  float offset() const override { return settings_.offset; }
  uint64_t sample_bytes() const override { return sample_bytes_; }
  bool in_memory() const override { return false; }
  bool made_on_use() const override { return true; }
  const void* features(uint64_t) const override { return nullptr; }
  void begin(uint64_t index, Sample& sample) const override;
  void report_corrupt(uint64_t index, const std::string& why) const override;
  void report_odd(uint64_t index, const std::string& what) const override;
  int32_t label(uint64_t index) const override;
  void require_objects() const override;
  const float* target(uint64_t) const override { return nullptr; }
  void will_need(uint64_t) const override {}
  std::string describe(uint64_t index) const override { return images_->name(index); }

 private:
  struct Bytes {
    uint64_t begin = 0;
    uint64_t size = 0;  // 0: not kept
  };
  bool has_objects() const { return label_kind_ == compute::LabelKind::objects; }
  void read_all(bool keep);
  bool shows_object() const;
  void tell(const BoxReport& boxes) const;
  std::string first_name() const;  // for messages about all samples

  const std::unique_ptr<ImageSet> images_;
  const spec::ImageSettings settings_;
  const std::vector<int64_t> shape_;
  const uint64_t sample_bytes_;
  const compute::LabelKind label_kind_;
  int64_t classes_;
  const std::vector<std::string> class_names_;
  // Empty: labels are objects, or are known only when an image is read.
  std::vector<int32_t> labels_;
  Storage kept_;
  std::vector<Bytes> places_;                           // places of the images in kept_
  std::vector<std::vector<images::Box>> kept_objects_;  // objects of the images in kept_
  std::optional<BoxReport> boxes_;                      // set if it is known for all images
  const std::unique_ptr<CorruptSamples> corrupt_;
};

}  // namespace muster::data
