#include <cmath>

#include "trainer/compute/cpu/losses/row_loss.h"

namespace muster::compute::cpu {
namespace {

class HuberLoss : public RowLoss {
 public:
  HuberLoss(const Huber& huber, Context& context)
      : RowLoss(context, "huber", 0), delta_(huber.delta) {}

 private:
  float one(const LossRow& row) const override {
    const float* target = row.batch.targets[row.index];
    const float scale = 1.0f / static_cast<float>(width());
    float sum = 0;
    for (int64_t i = 0; i < width(); ++i) {
      const float difference = row.y[i] - target[i];
      const float distance = std::abs(difference);
      sum +=
          distance <= delta_ ? 0.5f * difference * difference : delta_ * (distance - 0.5f * delta_);
      row.dy[i] = scale * (distance <= delta_ ? difference : std::copysign(delta_, difference));
    }
    return sum * scale;
  }

  const float delta_;
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const Huber& huber, Context& context) {
  return std::make_unique<HuberLoss>(huber, context);
}

}  // namespace muster::compute::cpu
