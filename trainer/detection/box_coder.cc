#include "trainer/detection/box_coder.h"

namespace muster::detection {

void BoxCoder::encode(std::span<const float> boxes, std::span<const float> anchors,
                      std::span<float> codes) const {
  for (size_t i = 0; i < box_count(boxes); ++i)
    encode_one(box_at(boxes, i), box_at(anchors, i), codes.data() + 4 * i);
}

void BoxCoder::decode(std::span<const float> codes, std::span<const float> anchors,
                      std::span<float> boxes) const {
  for (size_t i = 0; i < box_count(codes); ++i)
    put_box(boxes, i, decode_one(codes.data() + 4 * i, box_at(anchors, i)));
}

}  // namespace muster::detection
