#include "trainer/compute/cuda/context.h"

namespace muster::compute::cuda {

Context::Context(const Graph& graph, Gpu& gpu, int64_t max_rows, uint64_t seed)
    : graph(graph), gpu(gpu), max_rows(max_rows), seed(seed), step{} {
  const int output = graph.values[static_cast<size_t>(graph.output)].memory;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    ValueMemory memory;
    if (value.memory == static_cast<int>(i)) {
      memory.width = value.width;
      memory.needs_gradient = value.needs_gradient;
      memory.data = std::make_unique<GpuArray<float>>(gpu, max_rows * value.width);
      // The loss always writes a gradient, even where nothing is trained.
      if (value.needs_gradient || static_cast<int>(i) == output)
        memory.gradient = std::make_unique<GpuArray<float>>(gpu, max_rows * value.width);
    }
    values_.push_back(std::move(memory));
  }
}

ValueMemory& Context::value(int index) {
  return values_[static_cast<size_t>(graph.values[static_cast<size_t>(index)].memory)];
}

int64_t Context::offset_of(const std::string& tensor) const {
  return static_cast<int64_t>(graph.layout.find(tensor).offset);
}

void Context::reserve_sums(int64_t rows, int64_t columns) {
  part_floats_ = std::max(part_floats_, 2 * parts_of(rows) * columns);
}

void Context::allocate_reserved() {
  parts_ = std::make_unique<GpuArray<float>>(gpu, part_floats_);
  patches_ = std::make_unique<GpuArray<float>>(gpu, patch_floats_);
}

void Context::sum_parts(int64_t rows, int64_t columns, const float* from, float* out) {
  gpu.launch(SumParts{parts_of(rows), columns, from, out});
}

void Context::sum_columns(int64_t rows, int64_t columns, const float* x, float* out) {
  gpu.launch(ColumnSums{rows, columns, x, parts()});
  sum_parts(rows, columns, parts(), out);
}

}  // namespace muster::compute::cuda
