#pragma once

#include "trainer/compute/cpu/layers/sliding.h"

namespace muster::compute::cpu {

// The samples of a convolution's input as images that are surrounded by the convolution's zeros.
// Each thread has memory for one image, unless a sample of the value can be read in place.
class SurroundedImage {
 public:
  // `height`, `width`: the size of the image with its zeros, which are at least the zeros of
  // `sliding`.
  SurroundedImage(Context& context, const ValueBlocks& value, const Sliding& sliding,
                  int64_t height, int64_t width);

  // Returns the image of a sample. Only the rows that output rows [begin, end) need are valid.
  const float* read(TeamThread thread, int64_t sample, int64_t begin, int64_t end) const;

  // Whether a sample of the value, and of its gradient, are floats in this layout.
  bool same_layout() const { return same_layout_; }
  int64_t row() const { return width_ * sliding_.channels; }  // floats from row to row
  int64_t floats() const { return height_ * row(); }
  // Returns the number of floats in the image before the value's first place.
  int64_t first() const { return sliding_.top * row() + sliding_.left * sliding_.channels; }

 private:
  const Context& context_;
  const ValueBlocks& value_;
  const Sliding sliding_;
  const int64_t height_, width_;
  const bool same_layout_;
  Block block_;  // the zeros are there from the start
};

}  // namespace muster::compute::cpu
