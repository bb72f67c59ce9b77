#include "trainer/compute/cpu/losses/row_loss.h"

namespace muster::compute::cpu {
namespace {

// A sample's loss is the mean over its targets, so that it does not grow with their number.
class MeanSquaredErrorLoss : public RowLoss {
 public:
  explicit MeanSquaredErrorLoss(Context& context) : RowLoss(context, "mean squared error", 0) {}

 private:
  float one(const LossRow& row) const override {
    return kernels().squared_error(width(), row.y, row.batch.targets[row.index], row.dy);
  }
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const MeanSquaredError&, Context& context) {
  return std::make_unique<MeanSquaredErrorLoss>(context);
}

}  // namespace muster::compute::cpu
