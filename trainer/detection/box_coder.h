#pragma once

#include <span>

namespace muster::detection {

// How a box is told relative to an anchor: codes [n, 4] of (ty, tx, th, tw). With centre (y, x),
// height h and width w of the box, and ya, xa, ha and wa of the anchor (Ren et al.: Faster R-CNN,
// equation 2, and FasterRcnnBoxCoder of the TF Object Detection API):
//   ty = y_scale (y - ya) / ha        th = height_scale ln(h / ha)
//   tx = x_scale (x - xa) / wa        tw = width_scale  ln(w / wa)
struct BoxCoder {
  float y_scale = 10;
  float x_scale = 10;
  float height_scale = 5;
  float width_scale = 5;

  bool operator==(const BoxCoder&) const = default;

  // Writes the codes of n boxes, each relative to the anchor of the same index. 1e-8 is added to
  // all sizes, so that a box without area has finite codes; one with exchanged borders has NaN.
  void encode(std::span<const float> boxes, std::span<const float> anchors,
              std::span<float> codes) const;
  // Writes the boxes of n codes. A box of very large codes can be infinite.
  void decode(std::span<const float> codes, std::span<const float> anchors,
              std::span<float> boxes) const;
};

}  // namespace muster::detection
