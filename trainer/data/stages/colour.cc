#include "trainer/images/colour.h"

#include <algorithm>

#include "trainer/data/stages/stage.h"

namespace muster::data {

void apply(const spec::Colour& colour, Sample& sample, Draws& draws) {
  const images::ColourDistortion settings{
      .brightness = static_cast<float>(colour.brightness),
      .least_contrast = static_cast<float>(colour.contrast.least),
      .most_contrast = static_cast<float>(colour.contrast.most),
      .hue = static_cast<float>(colour.hue),
      .least_saturation = static_cast<float>(colour.saturation.least),
      .most_saturation = static_cast<float>(colour.saturation.most)};
  sample.floats.resize(sample.features.size());
  std::ranges::transform(sample.features, sample.floats.begin(), [](std::byte value) {
    return static_cast<float>(std::to_integer<uint8_t>(value));
  });
  images::distort_colour(sample.floats, settings, draws);
  std::ranges::transform(sample.floats, sample.features.begin(),
                         [](float value) { return static_cast<std::byte>(value + 0.5f); });
}

}  // namespace muster::data
