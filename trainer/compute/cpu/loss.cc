#include "trainer/compute/cpu/operation.h"

namespace muster::compute::cpu {
namespace {

// Both losses go row by row; a row's loss is kept and the rows are summed in order afterwards, so
// that the sum does not depend on the number of threads.
class RowLoss : public LossOperation {
 public:
  RowLoss(Context& context, std::string name)
      : context_(context),
        out_(context.values[static_cast<size_t>(context.graph.output)]),
        losses_(context.arena.add(context.max_rows * 4)),
        correct_(context.arena.add(context.max_rows * 4)),
        name_(std::move(name)) {
    context.claim_gradient(out_);
  }

  void forward(Program& program) override {
    program.add(name_,
                {reads(out_.data, Share::rows), writes(out_.gradient, Share::rows),
                 writes(losses_, Share::rows)},
                [this](const Step& step, Member member) {
                  for (int64_t row = member.begin(step.rows); row < member.end(step.rows); ++row) {
                    const float* y = context_.arena.floats(out_.data) + row * out_.stride;
                    float* dy = context_.arena.floats(out_.gradient) + row * out_.stride;
                    bool correct = false;
                    context_.arena.floats(losses_)[row] = one(*step.batch, row, y, dy, correct);
                    context_.arena.integers(correct_)[row] = correct;
                  }
                });
  }

  void backward(Program&) override {}

  LossSums sums(int64_t rows) const override {
    LossSums sums;
    for (int64_t row = 0; row < rows; ++row) {
      sums.loss += context_.arena.floats(losses_)[row];
      sums.terms[0] += context_.arena.integers(correct_)[row];
    }
    sums.rows = rows;
    sums.weight = static_cast<double>(rows);
    return sums;
  }

 protected:
  // The row's loss; dy receives its gradient.
  virtual float one(const Batch& batch, int64_t row, const float* y, float* dy,
                    bool& correct) const = 0;

  const Kernels& kernels() const { return context_.kernels; }
  int64_t width() const { return out_.width; }

 private:
  Context& context_;
  ValueBlocks& out_;
  Block losses_, correct_;
  const std::string name_;
};

class SoftmaxCrossEntropy : public RowLoss {
 public:
  explicit SoftmaxCrossEntropy(Context& context) : RowLoss(context, "softmax cross entropy") {}

 private:
  float one(const Batch& batch, int64_t row, const float* y, float* dy,
            bool& correct) const override {
    const int32_t label = batch.labels[static_cast<size_t>(row)];
    const float loss = kernels().softmax(width(), y, dy, label);
    dy[label] -= 1.0f;
    int64_t most = 0;
    for (int64_t i = 1; i < width(); ++i) {
      if (y[i] > y[most]) most = i;
    }
    correct = most == label;
    return loss;
  }
};

// A sample's loss is the mean over its targets, so that it does not grow with their number.
class MeanSquaredError : public RowLoss {
 public:
  explicit MeanSquaredError(Context& context) : RowLoss(context, "mean squared error") {}

 private:
  float one(const Batch& batch, int64_t row, const float* y, float* dy, bool&) const override {
    return kernels().squared_error(width(), y, batch.targets[static_cast<size_t>(row)], dy);
  }
};

}  // namespace

std::unique_ptr<LossOperation> make_loss(Context& context) {
  if (context.graph.loss == Loss::mean_squared_error) {
    return std::make_unique<MeanSquaredError>(context);
  }
  return std::make_unique<SoftmaxCrossEntropy>(context);
}

}  // namespace muster::compute::cpu
