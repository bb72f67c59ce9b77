#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "common/json.h"
#include "trainer/compute/mismatch.h"

namespace muster::spec {

// The stages that a sample of the training goes through at each use, as plain values; trainer/data
// implements them. A sample is an image: {height, width} or {height, width, channels}.

// Moves the image by whole pixels, along each axis by -pixels to pixels, all equally likely. Pixels
// that move in are zero.
struct Shift {
  int64_t pixels = 1;
};
// Mirrors the image left to right with this probability.
struct Flip {
  double probability = 0.5;
};

using StageKind = std::variant<Shift, Flip>;

// Returns why samples of this shape cannot go through the stage, with the field to name
// ("shift.pixels"); nothing if they can. Mismatch::layer has no meaning here.
std::optional<compute::Mismatch> mismatch_of(const StageKind& stage,
                                             const std::vector<int64_t>& shape);

// Converts a list that the schema has checked.
std::vector<StageKind> to_stages(const Json& augment);

}  // namespace muster::spec
