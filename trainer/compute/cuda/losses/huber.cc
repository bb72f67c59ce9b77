#include "trainer/compute/cuda/losses/row_loss.h"

namespace muster::compute::cuda {
namespace {

class HuberLoss : public RowLoss {
 public:
  HuberLoss(const Huber& huber, Context& context) : RowLoss(context, 0), delta_(huber.delta) {}

 private:
  void launch(int64_t rows) override {
    context().gpu.launch(HuberRows{rows, output().width, output().values(), context().step.targets,
                                   delta_, output().gradients(), losses()});
  }

  const float delta_;
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const Huber& huber, Context& context) {
  return std::make_unique<HuberLoss>(huber, context);
}

}  // namespace muster::compute::cuda
