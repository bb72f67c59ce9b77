#include "trainer/detection/box_coder.h"

#include <cmath>

#include "trainer/detection/box.h"

namespace muster::detection {

namespace {

constexpr float kEpsilon = 1e-8f;

struct CenterAndSize {
  float y;
  float x;
  float height;
  float width;
};

CenterAndSize center_and_size(const Box& box) {
  const float height = box.ymax - box.ymin;
  const float width = box.xmax - box.xmin;
  return {box.ymin + height / 2, box.xmin + width / 2, height, width};
}

}  // namespace

void BoxCoder::encode(std::span<const float> boxes, std::span<const float> anchors,
                      std::span<float> codes) const {
  for (size_t i = 0; i < box_count(boxes); ++i) {
    const CenterAndSize box = center_and_size(box_at(boxes, i));
    const CenterAndSize anchor = center_and_size(box_at(anchors, i));
    const float anchor_height = anchor.height + kEpsilon;
    const float anchor_width = anchor.width + kEpsilon;
    float* code = codes.data() + 4 * i;
    code[0] = (box.y - anchor.y) / anchor_height * y_scale;
    code[1] = (box.x - anchor.x) / anchor_width * x_scale;
    code[2] = std::log((box.height + kEpsilon) / anchor_height) * height_scale;
    code[3] = std::log((box.width + kEpsilon) / anchor_width) * width_scale;
  }
}

void BoxCoder::decode(std::span<const float> codes, std::span<const float> anchors,
                      std::span<float> boxes) const {
  for (size_t i = 0; i < box_count(codes); ++i) {
    const CenterAndSize anchor = center_and_size(box_at(anchors, i));
    const float* code = codes.data() + 4 * i;
    const float y = code[0] / y_scale * anchor.height + anchor.y;
    const float x = code[1] / x_scale * anchor.width + anchor.x;
    const float height = std::exp(code[2] / height_scale) * anchor.height;
    const float width = std::exp(code[3] / width_scale) * anchor.width;
    put_box(boxes, i, {y - height / 2, x - width / 2, y + height / 2, x + width / 2});
  }
}

}  // namespace muster::detection
