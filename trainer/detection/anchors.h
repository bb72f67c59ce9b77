#pragma once

#include <span>
#include <vector>

namespace muster::detection {

// The settings of the TF Object Detection API's ssd_anchor_generator, with its names and defaults.
struct SsdAnchorSettings {
  int num_layers = 6;
  // The scale of a layer, relative to the image's shorter side: from min_scale in the first layer
  // to max_scale in the last, in equal steps (Liu et al.: SSD, section 2.2). A single layer has
  // min_scale.
  float min_scale = 0.2f;
  float max_scale = 0.95f;
  // The scales of the layers, in place of the two above; empty, or num_layers of them.
  std::vector<float> scales;
  std::vector<float> aspect_ratios = {1.0f, 2.0f, 0.5f, 3.0f, 0.3333f};  // width / height
  // The aspect ratio of one more anchor, whose scale is the geometric mean of the layer's scale and
  // the next layer's (1 after the last); 0: there is none.
  float interpolated_scale_aspect_ratio = 1.0f;
  // The size of an anchor of scale 1 and aspect ratio 1, relative to the image's shorter side.
  float base_anchor_height = 1.0f;
  float base_anchor_width = 1.0f;
  // The first layer has only three anchors: of scale 0.1 and aspect ratio 1, and of its own scale
  // and aspect ratios 2 and 0.5.
  bool reduce_boxes_in_lowest_layer = true;

  bool operator==(const SsdAnchorSettings&) const = default;
};

// The grid of anchors of a layer of the network.
struct FeatureMap {
  int height = 0;
  int width = 0;

  bool operator==(const FeatureMap&) const = default;
};

// Returns for each layer the number of anchors in each cell of its grid. Throws Invalid for
// settings without anchors.
std::vector<int> anchors_per_cell(const SsdAnchorSettings& settings);

// Returns the anchors of all layers, boxes [n, 4]: layer by layer, in a layer row by row of the
// grid, and in a cell in the order of the aspect ratios, with the interpolated one last. An
// anchor's centre is the centre of its cell; an anchor may reach beyond the image. Only the ratio
// of the image's sides matters, not its size in pixels. Throws Invalid for settings without
// anchors, and unless there is one feature map for each layer.
std::vector<float> ssd_anchors(const SsdAnchorSettings& settings,
                               std::span<const FeatureMap> feature_maps, int image_height,
                               int image_width);

}  // namespace muster::detection
