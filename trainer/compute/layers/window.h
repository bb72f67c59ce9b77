#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/compute/layers/layer.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

// How a window moves over an image; axis 0 is the height, axis 1 the width.
struct Geometry {
  std::array<int64_t, 2> input{};   // size of the image
  std::array<int64_t, 2> output{};  // number of places of the window
  std::array<int64_t, 2> size{1, 1};
  std::array<int64_t, 2> strides{1, 1};
  std::array<int64_t, 2> before{};  // zeros before the image
  int64_t channels = 1;             // channels of the image

  int64_t places() const { return output[0] * output[1]; }
  int64_t window_places() const { return size[0] * size[1]; }
};

// Returns the shape with its channels as third axis; nothing if it is no image.
std::optional<std::vector<int64_t>> as_image(const std::vector<int64_t>& shape);

// Returns the geometry for one sample of `shape`; or a Mismatch that names the setting, if the
// shape is no image or the window does not fit.
std::variant<Geometry, Mismatch> geometry_of(const Window& window,
                                             const std::vector<int64_t>& shape);

}  // namespace muster::compute
