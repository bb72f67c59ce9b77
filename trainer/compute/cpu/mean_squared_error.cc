#include "trainer/compute/cpu/row_loss.h"

namespace muster::compute::cpu {
namespace {

// A sample's loss is the mean over its targets, so that it does not grow with their number.
class MeanSquaredErrorLoss : public RowLoss {
 public:
  explicit MeanSquaredErrorLoss(Context& context) : RowLoss(context, "mean squared error", 0) {}

 private:
  float one(const Batch& batch, int64_t row, const float* y, float* dy,
            std::span<float>) const override {
    return kernels().squared_error(width(), y, batch.targets[static_cast<size_t>(row)], dy);
  }
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const MeanSquaredError&, Context& context) {
  return std::make_unique<MeanSquaredErrorLoss>(context);
}

}  // namespace muster::compute::cpu
