#include "trainer/compute/cuda/losses/row_loss.h"

namespace muster::compute::cuda {
namespace {

class MeanSquaredErrorLoss : public RowLoss {
 public:
  explicit MeanSquaredErrorLoss(Context& context) : RowLoss(context, 0) {}

 private:
  void launch(int64_t rows) override {
    context().gpu.launch(SquaredErrorRows{rows, output().width, output().values(),
                                          context().step.targets, context().step.weights,
                                          output().gradients(), losses()});
  }
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const MeanSquaredError&, Context& context) {
  return std::make_unique<MeanSquaredErrorLoss>(context);
}

}  // namespace muster::compute::cuda
