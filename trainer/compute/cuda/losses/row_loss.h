#pragma once

#include "trainer/compute/cuda/operation.h"

namespace muster::compute::cuda {

// A loss that kernels compute row by row, and that is divided by the number of rows unless
// prepare() says otherwise. Its rows are summed on the host, in order.
class RowLoss : public LossOperation {
 public:
  // `terms` is the number of sums that the loss has besides itself.
  RowLoss(Context& context, int64_t terms);

  void run(const Step& step) override;
  LossSums sums(int64_t rows) const override;
  double prepare(const Batch& batch) override { return static_cast<double>(batch.rows); }

 protected:
  // Asks for the kernels.
  virtual void launch(int64_t rows) = 0;

  Context& context() { return context_; }
  const ValueMemory& output() const { return out_; }
  float* losses() const { return results_.data(); }
  float* term(int64_t index) const { return results_.data() + (index + 1) * context_.max_rows; }

 private:
  Context& context_;
  ValueMemory& out_;
  const int64_t terms_;
  HostArray<float> results_;  // [1 + terms, max_rows]: losses, then each term; kernels write them
};

}  // namespace muster::compute::cuda
