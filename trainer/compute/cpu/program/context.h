#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/compute/cpu/program/numbers.h"
#include "trainer/compute/cpu/program/program.h"
#include "trainer/compute/fusion.h"
#include "trainer/compute/graph.h"

namespace muster::compute::cpu {

// Rows of an activation start on cache lines; threads own columns in whole lines.
constexpr int64_t kLine = 16;
inline int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// The list of the nonzero elements of an activation. The list is kept if a product with the
// activation may be cheaper without the zeros. Each thread lists its share of the columns.
struct SparseValue {
  Block counts, indices, values;  // each thread's part, `*_stride` apart
  int64_t counts_stride = 0, entries_stride = 0;
  Block masks;
  int64_t words = 0;
  Block nonzeros;       // one count for each thread, kLine int32 apart
  bool active = false;  // decided between steps

  NonzeroList of(const Arena& arena, TeamThread thread) const {
    return {arena.integers(counts) + thread.index * counts_stride,
            arena.integers(indices) + thread.index * entries_stride,
            arena.floats(values) + thread.index * entries_stride};
  }
};

class NormalizedValue;  // normalized_value.h

// An activation and its gradient in the arena: [max_rows, stride], of which `width` columns are
// used. In planes, each thread's columns lie together in pages of their own. Otherwise hardware
// prefetching would run on from one thread's columns into lines that another thread is about to
// write.
struct ValueBlocks {
  int64_t width = 0;
  int64_t stride = 0;  // numbers from row to row, in the whole value or in a plane
  int64_t plane = 0;   // floats from thread to thread; 0: not in planes
  bool needs_gradient = false;
  // Used while the backward program is built: a second writer adds to the gradient.
  bool gradient_written = false;
  bool half = false;  // data and gradient are bfloat16; only of normalized values
  Block data, gradient;
  std::unique_ptr<SparseValue> sparse;
  // Set if `data` holds the raw outputs of a convolution, from which readers compute the value.
  // Only convolutions read or write such values.
  std::unique_ptr<NormalizedValue> normalized;
  ValueBlocks();
  ValueBlocks(ValueBlocks&&) noexcept;
  ~ValueBlocks();
};

// The state that all operations of one engine share.
struct Context {
  const Graph& graph;
  const Kernels& kernels;
  Arena& arena;
  int threads = 1;
  int64_t max_rows = 1;
  uint64_t seed = 1;
  bool pairs = false;  // products with bfloat16 values are products of pairs (Kernels::gemm_pairs)
  std::vector<Fusion> fusions;
  std::vector<ValueBlocks> values;  // the index is Value::memory

  // Returns the memory of a value of the graph.
  ValueBlocks& value(int index) {
    return values[static_cast<size_t>(graph.values[static_cast<size_t>(index)].memory)];
  }
  // Returns the memory of the value that a convolution's operation computes; see
  // compute::output_of.
  ValueBlocks& output_of(const Node& convolution);
  // Adds a block of `floats` for each thread; thread i's part begins at i * own_stride(floats).
  Block add_own(int64_t floats) { return arena.add(own_stride(floats) * threads * 4); }
  static int64_t own_stride(int64_t floats) { return round_up(floats, 2 * kLine) + 2 * kLine; }
  // Returns the thread's part of a block that add_own(floats) returned; null for no block.
  float* own(Block block, int64_t floats, TeamThread thread) const {
    return block ? arena.floats(block) + thread.index * own_stride(floats) : nullptr;
  }
  // Return a sample of a value, which is not in planes.
  Numbers data(const ValueBlocks& value, int64_t sample) const {
    return Numbers{arena.floats(value.data), value.half} + sample * value.stride;
  }
  Numbers gradient(const ValueBlocks& value, int64_t sample) const {
    return Numbers{arena.floats(value.gradient), value.half} + sample * value.stride;
  }
  // Returns the pointer p such that p[row * value.stride + column] is an element of the thread's
  // own columns or, if the value is not in planes, of any column.
  float* own_columns(Block block, const ValueBlocks& value, TeamThread thread) const {
    const int64_t shift =
        value.plane == 0 ? 0 : thread.index * value.plane - thread.begin(value.width, kLine);
    return arena.floats(block) + shift;
  }
  // Returns the tensor's position in layout().tensors().
  int64_t tensor_index(const std::string& name) const;
  // Returns whether the next writer of this gradient must add to it, and marks the gradient as
  // written.
  bool claim_gradient(ValueBlocks& value) {
    const bool accumulate = value.gradient_written;
    value.gradient_written = true;
    return accumulate;
  }
};

// Counts the nonzero elements in the thread's columns of an activation, and lists them if the list
// is active: for the product and, in training, for the weights' gradient.
void find_nonzeros(const Context& context, const ValueBlocks& value, const Step& step,
                   TeamThread thread);

// Updates a contiguous piece of a tensor from step.gradients, if the step trains.
void update_piece(const Context& context, const Step& step, int64_t tensor, int64_t begin,
                  int64_t end);

}  // namespace muster::compute::cpu
