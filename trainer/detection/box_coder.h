#pragma once

#include <cmath>
#include <span>

#include "common/inline.h"
#include "trainer/detection/box.h"

namespace muster::detection {

// Codes a box relative to an anchor: codes [n, 4] of (ty, tx, th, tw). With centre (y, x), height h
// and width w of the box, and ya, xa, ha and wa of the anchor (Ren et al.: Faster R-CNN, equation
// 2, and FasterRcnnBoxCoder of the TF Object Detection API):
//   ty = y_scale (y - ya) / ha        th = height_scale ln(h / ha)
//   tx = x_scale (x - xa) / wa        tw = width_scale  ln(w / wa)
struct BoxCoder {
  float y_scale = 10;
  float x_scale = 10;
  float height_scale = 5;
  float width_scale = 5;

  bool operator==(const BoxCoder&) const = default;

  // Writes the codes of n boxes, each relative to the anchor of the same index. 1e-8 is added to
  // all sizes, so that a box without area has finite codes; a box with exchanged borders has NaN.
  void encode(std::span<const float> boxes, std::span<const float> anchors,
              std::span<float> codes) const;
  // Writes the boxes of n codes. A box of very large codes can be infinite.
  void decode(std::span<const float> codes, std::span<const float> anchors,
              std::span<float> boxes) const;

  // These two do the same for one box, with its four codes.
  MUSTER_INLINE void encode_one(const Box& box, const Box& anchor, float* code) const;
  MUSTER_INLINE Box decode_one(const float* code, const Box& anchor) const;

 private:
  struct CenterAndSize {
    float y, x, height, width;
  };
  MUSTER_INLINE static CenterAndSize center_and_size(const Box& box) {
    const float height = box.ymax - box.ymin;
    const float width = box.xmax - box.xmin;
    return {box.ymin + height / 2, box.xmin + width / 2, height, width};
  }
};

MUSTER_INLINE void BoxCoder::encode_one(const Box& box, const Box& anchor, float* code) const {
  constexpr float kEpsilon = 1e-8f;
  const CenterAndSize inner = center_and_size(box), outer = center_and_size(anchor);
  const float outer_height = outer.height + kEpsilon;
  const float outer_width = outer.width + kEpsilon;
  code[0] = (inner.y - outer.y) / outer_height * y_scale;
  code[1] = (inner.x - outer.x) / outer_width * x_scale;
  code[2] = std::log((inner.height + kEpsilon) / outer_height) * height_scale;
  code[3] = std::log((inner.width + kEpsilon) / outer_width) * width_scale;
}

MUSTER_INLINE Box BoxCoder::decode_one(const float* code, const Box& anchor) const {
  const CenterAndSize outer = center_and_size(anchor);
  const float y = code[0] / y_scale * outer.height + outer.y;
  const float x = code[1] / x_scale * outer.width + outer.x;
  const float height = std::exp(code[2] / height_scale) * outer.height;
  const float width = std::exp(code[3] / width_scale) * outer.width;
  return {y - height / 2, x - width / 2, y + height / 2, x + width / 2};
}

}  // namespace muster::detection
