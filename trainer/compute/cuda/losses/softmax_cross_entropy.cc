#include "trainer/compute/cuda/losses/row_loss.h"

namespace muster::compute::cuda {
namespace {

class SoftmaxCrossEntropyLoss : public RowLoss {
 public:
  explicit SoftmaxCrossEntropyLoss(Context& context) : RowLoss(context, 1) {}

 private:
  void launch(int64_t rows) override {
    context().gpu.launch(SoftmaxCrossEntropyRows{rows, output().width, output().values(),
                                                 context().step.labels, context().step.weights,
                                                 output().gradients(), losses(), term(0)});
  }
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const SoftmaxCrossEntropy&, Context& context) {
  return std::make_unique<SoftmaxCrossEntropyLoss>(context);
}

}  // namespace muster::compute::cuda
