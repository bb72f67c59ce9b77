#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "common/documents/json.h"
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

// The smallest and the largest value.
struct Range {
  double least = 0;
  double most = 0;

  bool operator==(const Range&) const = default;
};
// Takes a part of the image, and resizes the part to the size of the whole image.
struct RandomCrop {
  Range area{0.08, 1.0};           // as a share of the image
  Range aspect{3.0 / 4, 4.0 / 3};  // width / height
};
// Takes a part of the image that shows enough of an object, like ssd_random_crop of the TF Object
// Detection API (see images::SsdCrop).
struct SsdRandomCrop {};
// Changes brightness, saturation, hue and contrast, in this order.
struct Colour {
  double brightness = 32.0 / 255;  // the largest change to either side
  Range saturation{0.5, 1.5};      // factor
  double hue = 0.2;                // the largest change to either side
  Range contrast{0.5, 1.5};        // factor
};

using StageKind = std::variant<Shift, Flip, RandomCrop, Colour, SsdRandomCrop>;

// Returns why samples of this shape cannot go through the stage, with the field to name
// ("shift.pixels"); nothing if they can. `decoded`: whether samples are decoded from image files.
// Mismatch::layer is not used.
std::optional<compute::Mismatch> mismatch_of(const StageKind& stage,
                                             const std::vector<int64_t>& shape, bool decoded);

// Converts a list that the schema has checked.
std::vector<StageKind> to_stages(const Json& augment);

}  // namespace muster::spec
