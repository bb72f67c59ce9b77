#include "trainer/data/stages/stage.h"
#include "trainer/images/crop.h"

namespace muster::data {

void apply(const spec::RandomCrop& crop, Sample& sample, Draws& draws) {
  const images::CropKind kind{.least_aspect = static_cast<float>(crop.aspect.least),
                              .most_aspect = static_cast<float>(crop.aspect.most),
                              .least_area = static_cast<float>(crop.area.least),
                              .most_area = static_cast<float>(crop.area.most),
                              .keep_image = 0};
  const images::ImageSize size = sample.size_to_crop();
  sample.crop(images::random_crop({{kind}}, size.height, size.width, sample.boxes, draws));
}

void apply(const spec::SsdRandomCrop&, Sample& sample, Draws& draws) {
  static const images::SsdCrop kCrop;
  const images::ImageSize size = sample.size_to_crop();
  sample.crop(images::random_crop(kCrop, size.height, size.width, sample.boxes, draws));
}

}  // namespace muster::data
