#pragma once

#include <cstdint>

namespace muster::images {

// The random numbers for one use of one image, in the order in which they are drawn. All randomness
// in this folder comes from here, so the same numbers give the same result.
class RandomNumbers {
 public:
  virtual ~RandomNumbers() = default;
  virtual double uniform() = 0;                // in (0, 1]
  virtual uint64_t below(uint64_t bound) = 0;  // in [0, bound), bound > 0

  float between(float least, float most) {
    return least + (most - least) * static_cast<float>(uniform());
  }
};

}  // namespace muster::images
