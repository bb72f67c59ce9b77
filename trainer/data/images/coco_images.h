#pragma once

#include <filesystem>
#include <vector>

#include "trainer/data/files/selection.h"
#include "trainer/data/images/image_set.h"
#include "trainer/records/coco.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// The images of COCO's annotations, each a file.
class CocoImages : public ImageSet {
 public:
  // `annotations` is the content of the source's file.
  CocoImages(records::CocoAnnotations annotations, const spec::CocoSource& source,
             const Selected& selected);

  uint64_t size() const override { return images_.size(); }
  std::optional<int32_t> known_label(uint64_t) const override { return 0; }
  std::string name(uint64_t image) const override { return path(image).string(); }
  uint64_t most_bytes(uint64_t image) const override;
  void read(uint64_t image, EncodedImage& to) const override;
  std::optional<BoxReport> boxes() const override { return boxes_; }

 private:
  std::filesystem::path path(uint64_t image) const { return folder_ / images_[image].file_name; }

  const std::filesystem::path folder_;
  std::vector<records::CocoImage> images_;  // labels are classes from 0
  BoxReport boxes_;                         // the problems are those of the whole file
};

}  // namespace muster::data
