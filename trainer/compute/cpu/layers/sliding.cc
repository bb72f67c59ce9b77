#include "trainer/compute/cpu/layers/sliding.h"

#include <algorithm>

namespace muster::compute::cpu {

Sliding sliding_of(const Window& window, const Graph& graph, int value) {
  const auto described = geometry_of(window, graph.values[static_cast<size_t>(value)].shape);
  const Geometry& g = std::get<Geometry>(described);
  return {g.input[0], g.input[1],   g.channels,   g.output[0], g.output[1], g.size[0],
          g.size[1],  g.strides[0], g.strides[1], g.before[0], g.before[1]};
}

Window whole_image(const Graph& graph, int value) {
  const auto shape = as_image(graph.values[static_cast<size_t>(value)].shape);
  return {{(*shape)[0], (*shape)[1]}, {1, 1}, Padding::valid};
}

void clear_samples(const Context& context, const ValueBlocks& value, const Step& step,
                   TeamThread thread) {
  float* gradient = context.arena.floats(value.gradient);
  std::fill(gradient + thread.begin(step.rows) * value.stride,
            gradient + thread.end(step.rows) * value.stride, 0.0f);
}

WeightGradient::WeightGradient(Context& context, int64_t rows, int64_t columns, int64_t kernel,
                               int64_t bias)
    : context_(context),
      rows_(rows),
      columns_(columns),
      kernel_(kernel),
      bias_(bias),
      block_(context.add_own(floats())) {}

void WeightGradient::clear(TeamThread thread) const {
  std::fill_n(of(thread), floats(), 0.0f);
}

void WeightGradient::add_sum(Program& program, const std::string& name) const {
  program.add(name, {reads(block_, Share::all)}, [this](const Step& step, TeamThread thread) {
    const auto& tensors = context_.graph.layout.tensors();
    const auto sum = [&](int64_t tensor, const float* from, int64_t begin, int64_t end) {
      float* to = step.gradients + tensors[static_cast<size_t>(tensor)].offset;
      context_.kernels.sum_parts(end - begin, columns_, context_.threads,
                                 Context::own_stride(floats()), from + begin * columns_, columns_,
                                 to + begin * columns_, columns_);
      update_piece(context_, step, tensor, begin * columns_, end * columns_);
    };
    const float* parts = context_.arena.floats(block_);
    sum(kernel_, parts, thread.begin(rows_), thread.end(rows_));
    if (bias_ >= 0 && thread.index == thread.count - 1) sum(bias_, parts + rows_ * columns_, 0, 1);
  });
}

}  // namespace muster::compute::cpu
