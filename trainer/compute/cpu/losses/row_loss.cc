#include "trainer/compute/cpu/losses/row_loss.h"

namespace muster::compute::cpu {

RowLoss::RowLoss(Context& context, std::string name, int64_t terms)
    : context_(context),
      out_(context.value(context.graph.output)),
      term_count_(terms),
      losses_(context.arena.add(context.max_rows * 4)),
      terms_(context.arena.add(context.max_rows * terms * 4)),
      name_(std::move(name)) {
  context.claim_gradient(out_);
}

void RowLoss::forward(Program& program) {
  program.add(
      name_,
      {reads(out_.data, Share::rows), writes(out_.gradient, Share::rows),
       writes(losses_, Share::rows)},
      [this](const Step& step, TeamThread thread) {
        const auto count = static_cast<size_t>(term_count_);
        for (int64_t row = thread.begin(step.rows); row < thread.end(step.rows); ++row) {
          const float* y = context_.arena.floats(out_.data) + row * out_.stride;
          float* dy = context_.arena.floats(out_.gradient) + row * out_.stride;
          float* terms = context_.arena.floats(terms_) + row * term_count_;
          float& loss = context_.arena.floats(losses_)[row];
          loss = one({*step.batch, static_cast<size_t>(row), y, dy, {terms, count}, thread.index});
          if (step.batch->weights.empty()) continue;
          const float weight = step.batch->weights[static_cast<size_t>(row)];
          loss *= weight;
          for (int64_t i = 0; i < width(); ++i) dy[i] *= weight;
        }
      });
}

LossSums RowLoss::sums(int64_t rows) const {
  LossSums sums;
  const float* terms = context_.arena.floats(terms_);
  for (int64_t row = 0; row < rows; ++row) {
    sums.loss += context_.arena.floats(losses_)[row];
    for (int64_t i = 0; i < term_count_; ++i) sums.terms[static_cast<size_t>(i)] += *terms++;
  }
  return sums;
}

}  // namespace muster::compute::cpu
