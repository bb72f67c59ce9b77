#include "trainer/data/images/coco_images.h"

#include <span>

#include "common/system/input_file.h"
#include "trainer/data/images/fit_boxes.h"
#include "trainer/data/images/image_files.h"
#include "trainer/images/decode.h"

namespace muster::data {

CocoImages::CocoImages(records::CocoAnnotations annotations, const spec::CocoSource& source,
                       const Selected& selected)
    : folder_(source.folder) {
  boxes_.add_file(annotations);
  for (uint64_t i = selected.first; i < selected.first + selected.count; ++i) {
    images_.push_back(std::move(annotations.images[i]));
    boxes_.add(images_.back().boxes, {});
    for (images::Box& box : images_.back().boxes)
      box.label = annotations.categories.class_of(box.label, source.model_classes);
  }
}

uint64_t CocoImages::most_bytes(uint64_t image) const {
  return file_bytes(path(image));
}

void CocoImages::read(uint64_t image, EncodedImage& to) const {
  to.bytes = read_image_file(path(image));
  const records::CocoImage& labelled = images_[image];
  to.boxes = labelled.boxes;
  to.problems = {};
  to.oddity.clear();
  const images::Name named = [&] { return name(image); };
  if (labelled.height > 0) {
    fit_boxes(labelled.height, labelled.width, named, to);
    return;
  }
  if (to.boxes.empty()) return;
  const auto [height, width] = images::read_size(std::as_bytes(std::span(to.bytes)), named);
  for (images::Box& box : to.boxes) {
    box.ymin /= static_cast<float>(height);
    box.ymax /= static_cast<float>(height);
    box.xmin /= static_cast<float>(width);
    box.xmax /= static_cast<float>(width);
  }
  to.problems = images::keep_usable(to.boxes);
}

}  // namespace muster::data
