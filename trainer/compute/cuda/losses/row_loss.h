#pragma once

#include "trainer/compute/cuda/operation.h"

namespace muster::compute::cuda {

// A loss that kernels compute row by row, and that is divided by the number of rows unless
// prepare() is overridden. The rows are summed on the host, in order.
class RowLoss : public LossOperation {
 public:
  // `terms` is the number of sums that the loss has besides itself.
  RowLoss(Context& context, int64_t terms);

  void run(const Step& step) override;
  LossSums sums(int64_t rows, int turn) const override;
  double prepare(const Batch& batch) override { return static_cast<double>(batch.rows); }

 protected:
  // Asks for the kernels.
  virtual void launch(int64_t rows) = 0;

  Context& context() { return context_; }
  const ValueMemory& output() const { return out_; }
  float* losses() const { return results(turn_); }
  float* term(int64_t index) const { return losses() + (index + 1) * context_.max_rows; }

 private:
  float* results(int turn) const {
    return results_.data() + turn * (1 + terms_) * context_.max_rows;
  }

  Context& context_;
  ValueMemory& out_;
  const int64_t terms_;
  // [2, 1 + terms, max_rows]: for each turn the losses, then each term; kernels write them.
  HostArray<float> results_;
  int turn_ = 0;  // the turn of the step that is asked for
};

}  // namespace muster::compute::cuda
