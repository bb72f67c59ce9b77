#include "trainer/detection/anchors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "trainer/detection/box.h"

namespace muster::detection {

namespace {

struct AnchorShape {
  float scale;
  float aspect_ratio;
};

void require_positive(float value, const char* name) {
  if (std::isfinite(value) && value > 0) return;
  throw Invalid(fmt::format("anchors: {} must be a number above 0, but is {}", name, value));
}

void check(const SsdAnchorSettings& settings) {
  if (settings.num_layers < 1) {
    throw Invalid(
        fmt::format("anchors: num_layers must be 1 or more, but is {}", settings.num_layers));
  }
  if (!settings.scales.empty() &&
      settings.scales.size() != static_cast<size_t>(settings.num_layers)) {
    throw Invalid(
        fmt::format("anchors: there must be one of scales for each of {} layers, but "
                    "there are {}",
                    settings.num_layers, settings.scales.size()));
  }
  if (settings.scales.empty()) {
    require_positive(settings.min_scale, "min_scale");
    require_positive(settings.max_scale, "max_scale");
  }
  for (const float scale : settings.scales) require_positive(scale, "each of scales");
  for (const float ratio : settings.aspect_ratios) require_positive(ratio, "each of aspect_ratios");
  if (settings.interpolated_scale_aspect_ratio != 0) {
    require_positive(settings.interpolated_scale_aspect_ratio, "interpolated_scale_aspect_ratio");
  }
  require_positive(settings.base_anchor_height, "base_anchor_height");
  require_positive(settings.base_anchor_width, "base_anchor_width");
}

// Returns the scale of each layer, and 1 after the last.
std::vector<double> scales_of(const SsdAnchorSettings& settings) {
  std::vector<double> scales(settings.scales.begin(), settings.scales.end());
  for (int layer = 0; settings.scales.empty() && layer < settings.num_layers; ++layer) {
    const double least = settings.min_scale;
    const double most = settings.max_scale;
    scales.push_back(layer == 0 ? least
                                : least + (most - least) * layer / (settings.num_layers - 1));
  }
  scales.push_back(1);
  return scales;
}

// Returns the anchors of a cell for each layer.
std::vector<std::vector<AnchorShape>> shapes_of(const SsdAnchorSettings& settings) {
  check(settings);
  const std::vector<double> scales = scales_of(settings);
  std::vector<std::vector<AnchorShape>> layers;
  for (size_t layer = 0; layer + 1 < scales.size(); ++layer) {
    const auto scale = static_cast<float>(scales[layer]);
    std::vector<AnchorShape>& shapes = layers.emplace_back();
    if (layer == 0 && settings.reduce_boxes_in_lowest_layer) {
      shapes = {{0.1f, 1.0f}, {scale, 2.0f}, {scale, 0.5f}};
      continue;
    }
    for (const float ratio : settings.aspect_ratios) shapes.push_back({scale, ratio});
    if (settings.interpolated_scale_aspect_ratio > 0) {
      const double between = std::sqrt(scales[layer] * scales[layer + 1]);
      shapes.push_back({static_cast<float>(between), settings.interpolated_scale_aspect_ratio});
    }
    if (shapes.empty()) {
      throw Invalid(
          "anchors: there must be aspect_ratios or an interpolated_scale_aspect_ratio, but there "
          "is neither");
    }
  }
  return layers;
}

}  // namespace

std::vector<int> anchors_per_cell(const SsdAnchorSettings& settings) {
  std::vector<int> counts;
  for (const auto& shapes : shapes_of(settings)) counts.push_back(static_cast<int>(shapes.size()));
  return counts;
}

std::vector<float> ssd_anchors(const SsdAnchorSettings& settings,
                               std::span<const FeatureMap> feature_maps, int image_height,
                               int image_width) {
  const auto layers = shapes_of(settings);
  if (feature_maps.size() != layers.size()) {
    throw Invalid(
        fmt::format("anchors: there must be one feature map for each of {} layers, but "
                    "there are {}",
                    layers.size(), feature_maps.size()));
  }
  if (image_height < 1 || image_width < 1) {
    throw Invalid(
        fmt::format("anchors: an image must have 1 x 1 pixels or more, but it has {} x {}",
                    image_height, image_width));
  }
  const auto shorter = static_cast<float>(std::min(image_height, image_width));
  const float base_height =
      shorter / static_cast<float>(image_height) * settings.base_anchor_height;
  const float base_width = shorter / static_cast<float>(image_width) * settings.base_anchor_width;
  std::vector<float> anchors;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const FeatureMap grid = feature_maps[layer];
    if (grid.height < 1 || grid.width < 1) {
      throw Invalid(
          fmt::format("anchors: feature map {} must have 1 x 1 cells or more, but it has {} x {}",
                      layer, grid.height, grid.width));
    }
    const float stride_y = 1.0f / static_cast<float>(grid.height);
    const float stride_x = 1.0f / static_cast<float>(grid.width);
    for (int y = 0; y < grid.height; ++y) {
      const float center_y = static_cast<float>(y) * stride_y + 0.5f * stride_y;
      for (int x = 0; x < grid.width; ++x) {
        const float center_x = static_cast<float>(x) * stride_x + 0.5f * stride_x;
        for (const AnchorShape& shape : layers[layer]) {
          const float root = std::sqrt(shape.aspect_ratio);
          const float height = shape.scale / root * base_height;
          const float width = shape.scale * root * base_width;
          anchors.insert(anchors.end(), {center_y - 0.5f * height, center_x - 0.5f * width,
                                         center_y + 0.5f * height, center_x + 0.5f * width});
        }
      }
    }
  }
  return anchors;
}

}  // namespace muster::detection
