#include "trainer/compute/cuda/context.h"

#include "common/error.h"

namespace muster::compute::cuda {

Context::Context(const Graph& graph, Gpu& gpu, const EngineOptions& options, int64_t most_patches)
    : graph(graph),
      gpu(gpu),
      max_rows(options.max_rows),
      seed(options.seed),
      half(options.precision == Precision::bfloat16),
      fusions(find_fusions(graph)),
      step{},
      most_patches(most_patches),
      rounded(gpu) {
  check_size("the parameters", static_cast<int64_t>(graph.layout.size()), "a smaller model");
  const int output = graph.values[static_cast<size_t>(graph.output)].memory;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    ValueMemory memory;
    if (value.memory == static_cast<int>(i) && !is_inside(fusions, static_cast<int>(i))) {
      check_size("a batch at one of the layers", max_rows * value.width);
      memory.width = value.width;
      memory.needs_gradient = value.needs_gradient;
      memory.half = half && is_end(fusions, static_cast<int>(i));
      const int64_t bytes = bytes_of(max_rows * value.width, memory.half);
      memory.data = std::make_unique<GpuArray<char>>(gpu, bytes);
      // The loss always writes a gradient, even where nothing is trained.
      if (value.needs_gradient || static_cast<int>(i) == output)
        memory.gradient = std::make_unique<GpuArray<char>>(gpu, bytes);
    }
    values_.push_back(std::move(memory));
  }
  for (const Fusion& fusion : fusions) {
    ValueMemory& memory = value(fusion.last().output);
    memory.normalized = std::make_unique<NormalizedValue>(*this, fusion, memory);
  }
}

void Context::check_size(const std::string& what, int64_t numbers, const std::string& advice) {
  if (numbers >= kMostNumbers)
    throw Invalid("GPU: expected fewer than " + std::to_string(kMostNumbers) + " numbers in " +
                  what + ", found " + std::to_string(numbers) + "; " + advice + " has fewer");
}

ValueMemory& Context::value(int index) {
  return values_[static_cast<size_t>(graph.values[static_cast<size_t>(index)].memory)];
}

ValueMemory& Context::output_of(const Node& convolution) {
  return value(compute::output_of(fusions, convolution));
}

int64_t Context::offset_of(const std::string& tensor) const {
  return static_cast<int64_t>(graph.layout.find(tensor).offset);
}

void Context::reserve_parts(const Cut& cut, int64_t sums) {
  parts_.reserve(sums * cut.most_parts() * cut.columns * int64_t{sizeof(float)});
}

void Context::allocate_reserved() {
  for (SharedMemory* memory : {&parts_, &patches, &raw}) memory->allocate(gpu);
  rounded.allocate();
}

void Context::sum_parts(int64_t parts, int64_t columns, const float* from, float* out) {
  gpu.launch(SumParts{parts, columns, from, out});
}

void Context::reserve_column_sums(int64_t rows, int64_t columns) {
  reserve_parts(ColumnSums{rows, columns, nullptr, nullptr}.cut(), 1);
}

void Context::sum_columns(int64_t rows, int64_t columns, const float* x, float* out) {
  const ColumnSums sums{rows, columns, x, parts()};
  gpu.launch(sums);
  sum_parts(sums.cut().parts, columns, parts(), out);
}

}  // namespace muster::compute::cuda
