#include "trainer/compute/cpu/losses/row_loss.h"

namespace muster::compute::cpu {
namespace {

template <class Loss>
class TargetRows : public RowLoss {
 public:
  TargetRows(const Loss& loss, Context& context, const char* name)
      : RowLoss(context, name, Loss::kTerms), loss_(loss), targets_(context.graph.label_count) {}

 private:
  float one(const LossRow& row) const override {
    const float* target = row.batch.targets[row.index];
    const float scale = 1.0f / static_cast<float>(width());
    float sum = 0, term = 0;
    for (int64_t i = 0; i < width(); ++i) {
      const TargetLoss output = loss_of_output(loss_, row.y, target, targets_, i);
      sum += output.loss;
      term += output.term;
      row.dy[i] = scale * output.slope;
    }
    if constexpr (Loss::kTerms > 0) row.terms[0] = term * scale;
    return sum * scale;
  }

  const Loss loss_;
  const int64_t targets_;  // of a row
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const Huber& loss, Context& context) {
  return std::make_unique<TargetRows<Huber>>(loss, context, "huber");
}
std::unique_ptr<LossOperation> make_loss(const BinaryCrossEntropy& loss, Context& context) {
  return std::make_unique<TargetRows<BinaryCrossEntropy>>(loss, context, "binary cross entropy");
}
std::unique_ptr<LossOperation> make_loss(const Poisson& loss, Context& context) {
  return std::make_unique<TargetRows<Poisson>>(loss, context, "poisson");
}
std::unique_ptr<LossOperation> make_loss(const Quantile& loss, Context& context) {
  return std::make_unique<TargetRows<Quantile>>(loss, context, "quantile");
}

}  // namespace muster::compute::cpu
