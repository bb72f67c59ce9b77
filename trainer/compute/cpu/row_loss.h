#pragma once

#include <span>
#include <string>

#include "trainer/compute/cpu/operation.h"

namespace muster::compute::cpu {

// A loss that is computed row by row and divided by the number of rows. The results of each row are
// kept, and the rows are summed in order afterwards, so that the sums do not depend on the number
// of threads.
class RowLoss : public LossOperation {
 public:
  // `terms` is the number of sums that the loss has besides itself.
  RowLoss(Context& context, std::string name, int64_t terms);

  void forward(Program& program) override;
  void backward(Program&) override {}
  LossSums sums(int64_t rows) const override;
  double weight(const Batch& batch) const override { return static_cast<double>(batch.rows); }

 protected:
  // Returns the row's loss. `dy` receives its gradient, and `terms` the amounts that the row adds
  // to each term.
  virtual float one(const Batch& batch, int64_t row, const float* y, float* dy,
                    std::span<float> terms) const = 0;

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
