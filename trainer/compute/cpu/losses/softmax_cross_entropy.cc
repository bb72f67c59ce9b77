#include "trainer/compute/cpu/losses/row_loss.h"

namespace muster::compute::cpu {
namespace {

class SoftmaxCrossEntropyLoss : public RowLoss {
 public:
  explicit SoftmaxCrossEntropyLoss(Context& context)
      : RowLoss(context, "softmax cross entropy", 1) {}

 private:
  // The term is 1 if the label's output is the largest.
  float one(const LossRow& row) const override {
    const int32_t label = row.batch.labels[row.index];
    const float* y = row.y;
    const float loss = kernels().softmax(width(), y, row.dy, label);
    row.dy[label] -= 1.0f;
    int64_t most = 0;
    for (int64_t i = 1; i < width(); ++i) {
      if (y[i] > y[most]) most = i;
    }
    row.terms[0] = most == label ? 1.0f : 0.0f;
    return loss;
  }
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const SoftmaxCrossEntropy&, Context& context) {
  return std::make_unique<SoftmaxCrossEntropyLoss>(context);
}

}  // namespace muster::compute::cpu
