#include "trainer/compute/layers/window.h"

#include <algorithm>

namespace muster::compute {

std::optional<std::vector<int64_t>> as_image(const std::vector<int64_t>& shape) {
  if (shape.size() == 3) return shape;
  if (shape.size() == 2) return std::vector<int64_t>{shape[0], shape[1], 1};
  return std::nullopt;
}

std::variant<Geometry, Mismatch> geometry_of(const Window& window,
                                             const std::vector<int64_t>& shape) {
  const auto image = as_image(shape);
  if (!image) {
    return Mismatch{-1, "inputs", "an image: [height, width, channels] or [height, width]",
                    to_string(shape)};
  }
  Geometry geometry;
  geometry.channels = (*image)[2];
  geometry.size = window.size;
  geometry.strides = window.strides;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t in = (*image)[axis], size = window.size[axis], stride = window.strides[axis];
    if (size < 1 || stride < 1) {
      return Mismatch{-1, size < 1 ? "size" : "strides", "numbers of at least 1",
                      to_string({window.size.begin(), window.size.end()})};
    }
    geometry.input[axis] = in;
    if (window.padding == Padding::valid) {
      if (size > in) {
        return Mismatch{-1, "padding", "a window that fits into an image of " + to_string(*image),
                        "a window of " + to_string({window.size.begin(), window.size.end()}) +
                            " with valid padding"};
      }
      geometry.output[axis] = (in - size) / stride + 1;
    } else {
      geometry.output[axis] = (in + stride - 1) / stride;
      const int64_t zeros = std::max<int64_t>(0, (geometry.output[axis] - 1) * stride + size - in);
      geometry.before[axis] = zeros / 2;
    }
  }
  return geometry;
}

}  // namespace muster::compute
