#include "trainer/compute/cuda/losses/row_loss.h"

namespace muster::compute::cuda {

RowLoss::RowLoss(Context& context, int64_t terms)
    : context_(context),
      out_(context.value(context.graph.output)),
      terms_(terms),
      results_(context.gpu, 2 * (1 + terms) * context.max_rows) {
  Context::claim_gradient(out_);
}

void RowLoss::run(const Step& step) {
  turn_ = step.turn;
  launch(step.rows);
}

LossSums RowLoss::sums(int64_t rows, int turn) const {
  const float* found = results(turn);
  LossSums sums;
  for (int64_t row = 0; row < rows; ++row) {
    sums.loss += found[row];
    for (int64_t i = 0; i < terms_; ++i)
      sums.terms[static_cast<size_t>(i)] += found[(i + 1) * context_.max_rows + row];
  }
  return sums;
}

}  // namespace muster::compute::cuda
