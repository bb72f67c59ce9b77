#include "trainer/images/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace muster::images {
namespace {

float clip(float value) {
  return std::clamp(value, 0.0f, 255.0f);
}

}  // namespace

void adjust_brightness(std::span<float> image, float delta) {
  for (float& value : image) value = clip(value + delta * 255.0f);
}

void adjust_contrast(std::span<float> image, float factor) {
  std::array<double, 3> sums{};
  for (size_t i = 0; i + 3 <= image.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) sums[c] += image[i + c];
  }
  std::array<float, 3> means{};
  const size_t pixels = std::max<size_t>(1, image.size() / 3);
  for (size_t c = 0; c < 3; ++c)
    means[c] = static_cast<float>(sums[c] / static_cast<double>(pixels));
  for (size_t i = 0; i + 3 <= image.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) {
      image[i + c] = clip((image[i + c] - means[c]) * factor + means[c]);
    }
  }
}

void adjust_hue(std::span<float> image, float delta) {
  for (size_t i = 0; i + 3 <= image.size(); i += 3) {
    const float red = image[i], green = image[i + 1], blue = image[i + 2];
    const float most = std::max({red, green, blue});
    const float range = most - std::min({red, green, blue});
    if (range <= 0) continue;  // grey has no hue
    // The hue in sixths of the circle: 0 is red, 2 green, 4 blue.
    float hue = (green - blue) / range;
    if (most != red) hue = most == green ? 2 + (blue - red) / range : 4 + (red - green) / range;
    hue += delta * 6;
    // A channel has the largest value within one sixth of its own hue, and the smallest beyond two
    // sixths.
    const auto channel = [&](float own) {
      float distance = std::fabs(hue - own);
      distance -= 6 * std::floor(distance / 6);
      distance = std::min(distance, 6 - distance);
      return clip(most - range * std::clamp(distance - 1, 0.0f, 1.0f));
    };
    image[i] = channel(0);
    image[i + 1] = channel(2);
    image[i + 2] = channel(4);
  }
}

void adjust_saturation(std::span<float> image, float factor) {
  for (size_t i = 0; i + 3 <= image.size(); i += 3) {
    const float most = std::max({image[i], image[i + 1], image[i + 2]});
    const float range = most - std::min({image[i], image[i + 1], image[i + 2]});
    if (range <= 0) continue;  // grey stays grey
    // The saturation is range / most. It grows by the factor, but not above 1.
    const float growth = std::min(factor, most / range);
    for (size_t c = 0; c < 3; ++c) image[i + c] = clip(most - (most - image[i + c]) * growth);
  }
}

void distort_colour(std::span<float> image, const ColourDistortion& settings,
                    RandomNumbers& numbers) {
  const auto contrast = [&] {
    adjust_contrast(image, numbers.between(settings.least_contrast, settings.most_contrast));
  };
  adjust_brightness(image, numbers.between(-settings.brightness, settings.brightness));
  if (settings.order == 1) contrast();
  adjust_saturation(image, numbers.between(settings.least_saturation, settings.most_saturation));
  adjust_hue(image, numbers.between(-settings.hue, settings.hue));
  if (settings.order != 1) contrast();
}

}  // namespace muster::images
