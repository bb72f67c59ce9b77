#include "trainer/compute/cpu/operation.h"

namespace muster::compute::cpu {
namespace {

class BatchNormalizationOperation : public Operation {
 public:
  BatchNormalizationOperation(const BatchNormalization& layer, const Node& node, Context& context)
      : name_(node.name),
        context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        epsilon_(layer.epsilon),
        momentum_(layer.momentum),
        trainable_(node.trainable) {
    for (size_t i = 0; i < 4; ++i) {
      tensors_[i] = context.tensor_index(node.parameters[i]);
      offsets_[i] = context.graph.layout.tensors()[static_cast<size_t>(tensors_[i])].offset;
    }
    const auto& tensor = context.graph.layout.tensors()[static_cast<size_t>(tensors_[kGamma])];
    features_ = static_cast<int64_t>(tensor.count);
    outer_ = out_.width / features_;
    // A thread owns features. They are columns of the value if there is only one position.
    share_ = outer_ == 1 ? Share::columns : Share::all;
    mean_ = context.arena.add(features_ * 4);
    inverse_ = context.arena.add(features_ * 4);
  }

  void forward(Program& program) override {
    program.add(name_ + " forward", {reads(in_.data, share_), writes(out_.data, share_)},
                [this](const Step& step, TeamThread thread) { run_forward(step, thread); });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    std::vector<Access> accesses{reads(in_.data, share_), reads(out_.gradient, share_)};
    if (in_.needs_gradient) accesses.push_back(writes(in_.gradient, share_));
    const bool accumulate = in_.needs_gradient && context_.claim_gradient(in_);
    program.add(name_ + " backward", accesses,
                [this, accumulate](const Step& step, TeamThread thread) {
                  run_backward(step, thread, accumulate);
                });
  }

 private:
  enum { kGamma, kBeta, kMean, kVariance };

  const float* parameter(const Step& step, int which, int64_t begin) const {
    return step.parameters + offsets_[which] + begin;
  }

  Normalization arguments(const Step& step, TeamThread thread) const {
    const int64_t begin = thread.begin(features_, kLine);
    Normalization n;
    n.samples = step.rows;
    n.outer = outer_;
    n.columns = thread.end(features_, kLine) - begin;
    n.sample_stride = out_.stride;
    n.outer_stride = features_;
    n.x = context_.arena.floats(in_.data) + begin;
    n.y = context_.arena.floats(out_.data) + begin;
    n.gamma = parameter(step, kGamma, begin);
    n.beta = parameter(step, kBeta, begin);
    n.mean = context_.arena.floats(mean_) + begin;
    n.inverse_deviation = context_.arena.floats(inverse_) + begin;
    return n;
  }

  void run_forward(const Step& step, TeamThread thread) const {
    const Kernels& k = context_.kernels;
    const int64_t begin = thread.begin(features_, kLine);
    const Normalization n = arguments(step, thread);
    if (n.columns == 0) return;
    const float* variance = parameter(step, kVariance, begin);
    if (step.training && trainable_) {
      k.statistics(n);
      keep_statistics(step, begin, n);
      variance = n.inverse_deviation;
    } else {
      const float* mean = parameter(step, kMean, begin);
      for (int64_t i = 0; i < n.columns; ++i) n.mean[i] = mean[i];
    }
    k.inverse_deviation(n.columns, variance, epsilon_, n.inverse_deviation);
    k.normalize(n);
  }

  // Keeps rows x mean and rows x variance. The variance has Bessel's correction, because the moving
  // statistics estimate that of the population. The optimizer divides by all replicas' rows.
  void keep_statistics(const Step& step, int64_t begin, const Normalization& n) const {
    const float rows = static_cast<float>(step.rows);
    const float count = static_cast<float>(step.rows * outer_);
    const float corrected = count > 1 ? rows * count / (count - 1) : rows;
    float* mean = step.gradients + offsets_[kMean] + begin;
    float* variance = step.gradients + offsets_[kVariance] + begin;
    for (int64_t i = 0; i < n.columns; ++i) {
      mean[i] = rows * n.mean[i];
      variance[i] = corrected * n.inverse_deviation[i];
    }
    if (step.rules == nullptr) return;
    context_.kernels.update_state(n.columns, momentum_, 1.0f / rows,
                                  step.parameters + offsets_[kMean] + begin, mean);
    context_.kernels.update_state(n.columns, momentum_, 1.0f / rows,
                                  step.parameters + offsets_[kVariance] + begin, variance);
  }

  void run_backward(const Step& step, TeamThread thread, bool accumulate) const {
    const int64_t begin = thread.begin(features_, kLine);
    Normalization n = arguments(step, thread);
    if (n.columns == 0) return;
    n.dy = context_.arena.floats(out_.gradient) + begin;
    n.dx = in_.needs_gradient ? context_.arena.floats(in_.gradient) + begin : nullptr;
    n.accumulate = accumulate;
    if (!trainable_) return context_.kernels.scale_gradient(n);
    n.dgamma = step.gradients + offsets_[kGamma] + begin;
    n.dbeta = step.gradients + offsets_[kBeta] + begin;
    context_.kernels.normalize_gradient(n);
    update_piece(context_, step, tensors_[kGamma], begin, begin + n.columns);
    update_piece(context_, step, tensors_[kBeta], begin, begin + n.columns);
  }

  const std::string name_;
  Context& context_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const float epsilon_, momentum_;
  const bool trainable_;
  int64_t tensors_[4] = {};
  size_t offsets_[4] = {};
  int64_t features_ = 0, outer_ = 1;
  Share share_ = Share::columns;
  Block mean_, inverse_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const BatchNormalization& layer, const Node& node,
                                          Context& context) {
  return std::make_unique<BatchNormalizationOperation>(layer, node, context);
}

}  // namespace muster::compute::cpu
