#include "trainer/compute/cpu/row_loss.h"

namespace muster::compute::cpu {
namespace {

class SoftmaxCrossEntropyLoss : public RowLoss {
 public:
  explicit SoftmaxCrossEntropyLoss(Context& context)
      : RowLoss(context, "softmax cross entropy", 1) {}

 private:
  // The term is 1 where the largest output is the label's.
  float one(const Batch& batch, int64_t row, const float* y, float* dy,
            std::span<float> terms) const override {
    const int32_t label = batch.labels[static_cast<size_t>(row)];
    const float loss = kernels().softmax(width(), y, dy, label);
    dy[label] -= 1.0f;
    int64_t most = 0;
    for (int64_t i = 1; i < width(); ++i) {
      if (y[i] > y[most]) most = i;
    }
    terms[0] = most == label ? 1.0f : 0.0f;
    return loss;
  }
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(const SoftmaxCrossEntropy&, Context& context) {
  return std::make_unique<SoftmaxCrossEntropyLoss>(context);
}

}  // namespace muster::compute::cpu
