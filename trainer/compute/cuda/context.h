#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/compute/cuda/gpu.h"
#include "trainer/compute/cuda/normalized_value.h"
#include "trainer/compute/cuda/program.h"
#include "trainer/compute/cuda/rounded_matrices.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/fusion.h"
#include "trainer/compute/graph.h"

namespace muster::compute::cuda {

// The memory of a value of the graph, [max_rows, width] without gaps.
struct ValueMemory {
  int64_t width = 0;
  bool needs_gradient = false;
  bool half = false;  // data and gradient are bfloat16; only of normalized values
  std::unique_ptr<GpuArray<char>> data;
  std::unique_ptr<GpuArray<char>> gradient;  // null if nothing writes the gradient
  bool claimed = false;                      // an operation writes the gradient
  // Set if `data` holds the raw outputs of a convolution, from which readers compute the value.
  // Only convolutions read or write such values.
  std::unique_ptr<NormalizedValue> normalized;
  // The value itself, as a factor for the products of convolutions of single places; null if the
  // value has no such readers. The first such reader writes it.
  std::unique_ptr<GpuArray<char>> factor;

  float* values() const { return plain(data); }
  float* gradients() const { return plain(gradient); }
  // These serve convolutions, which handle normalized values and both formats.
  Numbers numbers() const { return {data->data(), half}; }
  Numbers gradient_numbers() const { return {gradient->data(), half}; }
  Reader reader() const { return normalized ? normalized->reader() : Reader{numbers()}; }

 private:
  float* plain(const std::unique_ptr<GpuArray<char>>& memory) const {
    if (normalized) throw std::logic_error("expected a value that is written");
    return reinterpret_cast<float*>(memory->data());
  }
};

// The data of a step besides parameters, in the GPU's memory.
struct StepData {
  const uint64_t* epoch;
  const uint64_t* positions;    // the rows' positions in the epoch's order
  const int32_t* labels;        // the rows' labels, if the loss takes classes
  const float* weights;         // the rows' weights
  float* targets;               // [rows, label_count], if it takes floats or objects
  const float* staged_targets;  // in the host's memory; the step copies them
};

// Memory that operations can share because the GPU runs them one after the other. Each operation
// reserves what it needs; then the largest need is allocated.
class SharedMemory {
 public:
  void reserve(int64_t bytes) { bytes_ = std::max(bytes_, bytes); }
  void allocate(Gpu& gpu) { memory_ = std::make_unique<GpuArray<char>>(gpu, bytes_); }
  void* data() const { return memory_->data(); }

 private:
  int64_t bytes_ = 0;
  std::unique_ptr<GpuArray<char>> memory_;
};

// The state that the operations of an engine share.
class Context {
 public:
  Context(const Graph& graph, Gpu& gpu, const EngineOptions& options, int64_t most_patches);

  const Graph& graph;
  Gpu& gpu;
  const int64_t max_rows;
  const uint64_t seed;
  const bool half;  // the precision is bfloat16
  const std::vector<Fusion> fusions;
  StepData step;               // set before the first run
  const int64_t most_patches;  // the most numbers in patches that a convolution makes at once
  SharedMemory patches;        // the patches of a convolution
  SharedMemory raw;            // a convolution's raw outputs, or their gradient
  RoundedMatrices rounded;     // copies of parameters for products of bfloat16

  // Throws Invalid if an array of `what` has too many numbers for a kernel. `advice` says how to
  // get fewer.
  static void check_size(const std::string& what, int64_t numbers,
                         const std::string& advice = "a smaller training.batchSize");

  // Returns the memory of a value; a reshaped value has the memory of the value it was made from.
  ValueMemory& value(int index);
  // Returns the memory of the value that a convolution's operation computes; see
  // compute::output_of.
  ValueMemory& output_of(const Node& convolution);
  // Returns the offset of a tensor in the flat buffers.
  int64_t offset_of(const std::string& tensor) const;

  // For operations that write the gradient of a value, called in the order of the backward pass.
  // Returns whether the caller must add to the present content.
  static bool claim_gradient(ValueMemory& value) { return std::exchange(value.claimed, true); }

  // Reserves memory for `sums` sums for each column and each part of a matrix, or of a matrix with
  // fewer rows.
  void reserve_parts(const Cut& cut, int64_t sums);
  // out[c] = sum of x[r, c] over the rows, [rows, columns] without gaps. An operation that uses it
  // must have reserved memory for its largest number of rows.
  void reserve_column_sums(int64_t rows, int64_t columns);
  void sum_columns(int64_t rows, int64_t columns, const float* x, float* out);
  // Returns the memory for the parts of such sums, with the reserved number of floats.
  float* parts() { return static_cast<float*>(parts_.data()); }
  // Adds up the parts that a kernel of column_sums.h has written.
  void sum_parts(int64_t parts, int64_t columns, const float* from, float* out);

  // Allocates the reserved memory. Must be called once, when all operations are made.
  void allocate_reserved();

 private:
  std::vector<ValueMemory> values_;
  SharedMemory parts_;
};

}  // namespace muster::compute::cuda
