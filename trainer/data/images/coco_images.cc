#include "trainer/data/images/coco_images.h"

#include "common/system/input_file.h"
#include "trainer/data/images/image_files.h"

namespace muster::data {

CocoImages::CocoImages(records::CocoAnnotations annotations, const spec::CocoSource& source,
                       const Selected& selected)
    : folder_(source.folder) {
  boxes_.add(0, annotations.problems);
  boxes_.add_without_image(annotations.without_image);
  for (uint64_t i = selected.first; i < selected.first + selected.count; ++i) {
    images_.push_back(std::move(annotations.images[i]));
    boxes_.add(images_.back().boxes.size(), {});
    for (images::Box& box : images_.back().boxes)
      box.label = annotations.categories.class_of(box.label, source.model_classes);
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
