#pragma once

#include "trainer/compute/cuda/grid.h"
#include "trainer/compute/cuda/numbers.h"

namespace muster::compute::cuda {

// to[i] = the sum of from[k][i] over k, in the tree of compute/tree_sum.h. `rounded`: each
// from[k][i] is first rounded to bfloat16; the sums are not.
struct SumTree {
  int64_t floats;
  int64_t count;             // number of arrays in `from`: 1 to 2^kLevels - 1
  const float* const* from;  // one of them may be `to`
  float* to;
  bool rounded;

  static constexpr int kLevels = 21;

  MUSTER_INLINE Shape shape() const { return blocks_for(floats); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, floats, [&](uint32_t i) { to[i] = count == 1 ? leaf(0, i) : sum(i); });
  }

 private:
  MUSTER_INLINE float leaf(int64_t k, uint32_t i) const {
    const float value = from[k][i];
    return rounded ? Array<true>::rounded(value) : value;
  }
  // sums[level] are the sums of whole subtrees that wait for their right siblings, the largest
  // first; they correspond to the 1 bits of k.
  MUSTER_INLINE float sum(uint32_t i) const {
    float sums[kLevels];
    int waiting = 0;
    for (int64_t k = 0; k < count; ++k) {
      float one = leaf(k, i);
      for (int64_t ones = k; (ones & 1) != 0; ones >>= 1) one = sums[--waiting] + one;
      sums[waiting++] = one;
    }
    float total = sums[--waiting];
    while (waiting > 0) total = sums[--waiting] + total;
    return total;
  }
};

}  // namespace muster::compute::cuda
