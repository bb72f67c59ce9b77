#include "trainer/compute/cuda/losses/row_loss.h"

namespace muster::compute::cuda {

RowLoss::RowLoss(Context& context, int64_t terms)
    : context_(context),
      out_(context.value(context.graph.output)),
      terms_(terms),
      results_(context.gpu, (1 + terms) * context.max_rows),
      copy_(context.gpu, (1 + terms) * context.max_rows) {
  Context::claim_gradient(out_);
}

void RowLoss::run(const Step& step) {
  launch(step.rows);
  const auto count = static_cast<size_t>((1 + terms_) * context_.max_rows);
  context_.gpu.download(copy_.data(), results_.data(), count * sizeof(float));
}

LossSums RowLoss::sums(int64_t rows) const {
  LossSums sums;
  for (int64_t row = 0; row < rows; ++row) {
    sums.loss += copy_.data()[row];
    for (int64_t i = 0; i < terms_; ++i)
      sums.terms[static_cast<size_t>(i)] += copy_.data()[(i + 1) * context_.max_rows + row];
  }
  return sums;
}

}  // namespace muster::compute::cuda
