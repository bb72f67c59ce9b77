#pragma once

#include <span>
#include <string>

#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {

// One row of a batch, for its loss.
struct LossRow {
  const Batch& batch;
  size_t index;            // index of the row in the batch
  const float* y;          // the model's output
  float* dy;               // receives the gradient
  std::span<float> terms;  // receives the row's amount of each term
  int thread;              // number of the calling thread
};

// A loss that is computed row by row, and divided by the number of rows unless prepare() is
// overridden. The results of each row are kept, and the rows are summed in order afterwards, so
// that the sums do not depend on the number of threads.
class RowLoss : public LossOperation {
 public:
  // `terms` is the number of sums that the loss has besides itself.
  RowLoss(Context& context, std::string name, int64_t terms);

  void forward(Program& program) override;
  void backward(Program&) override {}
  LossSums sums(int64_t rows) const override;
  double prepare(const Batch& batch) override { return static_cast<double>(batch.rows); }

 protected:
  // Returns the row's loss, without its weight.
  virtual float one(const LossRow& row) const = 0;

  const Kernels& kernels() const { return context_.kernels; }
  int64_t width() const { return out_.width; }

 private:
  Context& context_;
  ValueBlocks& out_;
  const int64_t term_count_;
  Block losses_, terms_;
  const std::string name_;
};

}  // namespace muster::compute::cpu
