#include "trainer/compute/layers/layer.h"

namespace muster::compute {

Described describe(const Flatten&, const LayerSpec&, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  return LayerShape{{*element_count(inputs[0].shape)}, {}};
}

Described describe(const Reshape& reshape, const LayerSpec&, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  const int64_t elements = *element_count(inputs[0].shape);
  std::vector<int64_t> shape = reshape.shape;
  int64_t* open = nullptr;
  int64_t given = 1;
  for (int64_t& axis : shape) {
    if (axis == -1 && open == nullptr) {
      open = &axis;
    } else if (axis < 1 || given > elements / axis) {
      given = 0;
      break;
    } else {
      given *= axis;
    }
  }
  const bool fits = given > 0 && (open != nullptr ? elements % given == 0 : given == elements);
  if (!fits || shape.empty()) {
    return Mismatch{-1, "shape",
                    "a shape of " + std::to_string(elements) + " elements, as the input of " +
                        to_string(inputs[0].shape) + " has, with at most one axis of -1",
                    to_string(reshape.shape)};
  }
  if (open != nullptr) *open = elements / given;
  return LayerShape{shape, {}};
}

}  // namespace muster::compute
