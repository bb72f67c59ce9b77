#pragma once

#include "trainer/compute/cuda/grid.h"
#include "trainer/compute/random.h"

namespace muster::compute::cuda {

#include "trainer/compute/formulas/hash.inc"

// out (+)= in * scale where a hash of (epoch, position of the row, feature) is at least `threshold`
// of 2^24, else 0. The CPU keeps the same elements.
struct DropElements {
  int64_t rows, columns;
  const float* in;
  float* out;
  uint64_t layer;             // the layer's own key for its masks
  const uint64_t* epoch;      // a single number
  const uint64_t* positions;  // the rows' positions
  uint32_t threshold;
  float scale;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * columns, [&](uint32_t i) {
      const auto width = static_cast<uint32_t>(columns);
      const uint64_t key = combine64(combine64(layer, *epoch), positions[i / width]);
      const uint32_t hash =
          hash_feature(i % width, static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
      const float kept = (hash >> 8) >= threshold ? in[i] * scale : 0.0f;
      out[i] = accumulate ? out[i] + kept : kept;
    });
  }
};

}  // namespace muster::compute::cuda
