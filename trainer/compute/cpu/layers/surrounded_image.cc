#include "trainer/compute/cpu/layers/surrounded_image.h"

#include <algorithm>

#include "trainer/compute/cpu/program/normalized_value.h"

namespace muster::compute::cpu {

SurroundedImage::SurroundedImage(Context& context, const ValueBlocks& value, const Sliding& sliding,
                                 int64_t height, int64_t width)
    : context_(context),
      value_(value),
      sliding_(sliding),
      height_(height),
      width_(width),
      same_layout_(!value.half && height == sliding.height && width == sliding.width) {
  if (value.normalized || !same_layout_) block_ = context.add_own(floats());
}

const float* SurroundedImage::read(TeamThread thread, int64_t sample, int64_t begin,
                                   int64_t end) const {
  const Numbers x = context_.data(value_, sample);
  if (!block_) return x.floats();
  const Sliding& s = sliding_;
  float* image = context_.own(block_, floats(), thread);
  const int64_t from = std::clamp<int64_t>(begin - s.top, 0, s.height);
  const int64_t to = std::clamp<int64_t>(end - 1 - s.top + s.window_height, from, s.height);
  for (int64_t y = from; y < to; ++y) {
    const Numbers line = x + y * s.width * s.channels;
    float* at = image + first() + y * row();
    if (value_.normalized) {
      value_.normalized->values(line, at, s.width);
    } else {
      std::copy_n(line.floats(), s.width * s.channels, at);
    }
  }
  return image;
}

}  // namespace muster::compute::cpu
