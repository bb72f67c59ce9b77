#include "trainer/compute/cuda/losses/row_loss.h"

namespace muster::compute::cuda {
namespace {

template <class Loss>
class TargetLossRows : public RowLoss {
 public:
  TargetLossRows(const Loss& loss, Context& context)
      : RowLoss(context, Loss::kTerms), loss_(loss) {}

 private:
  void launch(int64_t rows) override {
    context().gpu.launch(TargetRows<Loss>{rows, output().width, output().values(),
                                          context().graph.label_count, context().step.targets,
                                          context().step.weights, loss_, output().gradients(),
                                          losses(), Loss::kTerms > 0 ? term(0) : nullptr});
  }

  const Loss loss_;
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const Huber& loss, Context& context) {
  return std::make_unique<TargetLossRows<Huber>>(loss, context);
}
std::unique_ptr<LossOperation> make_loss(const BinaryCrossEntropy& loss, Context& context) {
  return std::make_unique<TargetLossRows<BinaryCrossEntropy>>(loss, context);
}
std::unique_ptr<LossOperation> make_loss(const Poisson& loss, Context& context) {
  return std::make_unique<TargetLossRows<Poisson>>(loss, context);
}
std::unique_ptr<LossOperation> make_loss(const Quantile& loss, Context& context) {
  return std::make_unique<TargetLossRows<Quantile>>(loss, context);
}

}  // namespace muster::compute::cuda
