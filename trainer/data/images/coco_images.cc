#include "trainer/data/images/coco_images.h"

#include "common/input_file.h"
#include "trainer/data/images/image_files.h"

namespace muster::data {

CocoImages::CocoImages(records::CocoAnnotations annotations, std::filesystem::path folder,
                       const Selected& selected)
    : folder_(std::move(folder)) {
  boxes_.add(0, annotations.problems);
  boxes_.add_without_image(annotations.without_image);
  for (uint64_t i = selected.first; i < selected.first + selected.count; ++i) {
    images_.push_back(std::move(annotations.images[i]));
    for (images::Box& box : images_.back().boxes)
      box.label = static_cast<int32_t>(*annotations.categories.index_of(box.label));
  }
}

uint64_t CocoImages::most_bytes(uint64_t image) const {
  return file_bytes(path(image));
}

void CocoImages::read(uint64_t image, EncodedImage& to) const {
  to.bytes = read_image_file(path(image));
  to.boxes = images_[image].boxes;
}

}  // namespace muster::data
