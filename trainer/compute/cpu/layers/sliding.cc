#include "trainer/compute/cpu/layers/sliding.h"

#include <algorithm>

namespace muster::compute::cpu {

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
