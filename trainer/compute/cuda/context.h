#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/compute/cuda/gpu.h"
#include "trainer/compute/cuda/program.h"
#include "trainer/compute/graph.h"

namespace muster::compute::cuda {

// The memory of a value of the graph, [max_rows, width] without gaps.
struct ValueMemory {
  int64_t width = 0;
  bool needs_gradient = false;
  std::unique_ptr<GpuArray<float>> data;
  std::unique_ptr<GpuArray<float>> gradient;  // where it is written
  bool claimed = false;                       // an operation writes the gradient

  float* values() const { return data->data(); }
  float* gradients() const { return gradient->data(); }
};

// What a step needs besides parameters, in the GPU's memory.
struct StepData {
  const uint64_t* epoch;
  const uint64_t* positions;    // of the rows in the epoch's order
  const int32_t* labels;        // of the rows, if the loss takes classes
  float* targets;               // [rows, label_count], if it takes floats or objects
  const float* staged_targets;  // in the host's memory, from where the step copies them
};

// What the operations of an engine share.
class Context {
 public:
  Context(const Graph& graph, Gpu& gpu, int64_t max_rows, uint64_t seed);

  const Graph& graph;
  Gpu& gpu;
  const int64_t max_rows;
  const uint64_t seed;
  StepData step;  // set before the first run

  // Returns the memory of a value, which is that of another one if it was reshaped.
  ValueMemory& value(int index);
  // Returns the offset of a tensor in the flat buffers.
  int64_t offset_of(const std::string& tensor) const;

  // For operations that write the gradient of a value, in the order of the backward pass. Returns
  // whether the caller must add to what is there.
  static bool claim_gradient(ValueMemory& value) { return std::exchange(value.claimed, true); }

  // out[c] = sum of x[r, c] over the rows, [rows, columns] without gaps. An operation that calls it
  // must have reserved for the most rows and columns that it has.
  void reserve_sums(int64_t rows, int64_t columns);
  void sum_columns(int64_t rows, int64_t columns, const float* x, float* out);
  // Memory for the parts of such sums, as many floats as have been reserved.
  float* parts() { return parts_->data(); }
  // Adds up the parts of a kernel in column_sums.h.
  void sum_parts(int64_t rows, int64_t columns, const float* from, float* out);

  // Memory for the patches of a convolution, as many floats as have been reserved.
  void reserve_patches(int64_t floats) { patch_floats_ = std::max(patch_floats_, floats); }
  float* patches() { return patches_->data(); }

  // Allocates what has been reserved, which all operations share, since the GPU runs one after the
  // other. It is called once, when all operations are made.
  void allocate_reserved();

 private:
  std::vector<ValueMemory> values_;
  int64_t part_floats_ = 0, patch_floats_ = 0;
  std::unique_ptr<GpuArray<float>> parts_, patches_;
};

}  // namespace muster::compute::cuda
