#include "trainer/compute/cpu/program/normalization_parameters.h"
#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {
namespace {

class BatchNormalizationOperation : public Operation {
 public:
  BatchNormalizationOperation(const BatchNormalization& layer, const Node& node, Context& context)
      : name_(node.name),
        context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        parameters_(layer, node, context),
        features_(parameters_.features()) {
    outer_ = out_.width / features_;
    // A thread owns features. Features are columns of the value if there is only one position.
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
  using Parameters = NormalizationParameters;

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
    n.gamma = parameters_.of(step, Parameters::kGamma) + begin;
    n.beta = parameters_.of(step, Parameters::kBeta) + begin;
    n.mean = context_.arena.floats(mean_) + begin;
    n.inverse_deviation = context_.arena.floats(inverse_) + begin;
    return n;
  }

  void run_forward(const Step& step, TeamThread thread) const {
    const Kernels& k = context_.kernels;
    const int64_t begin = thread.begin(features_, kLine);
    const Normalization n = arguments(step, thread);
    if (n.columns == 0) return;
    const float* variance = parameters_.of(step, Parameters::kVariance) + begin;
    if (step.training && parameters_.trainable()) {
      k.statistics(n);
      parameters_.keep_statistics(step, outer_, begin, begin + n.columns, n.mean,
                                  n.inverse_deviation);
      variance = n.inverse_deviation;
    } else {
      const float* mean = parameters_.of(step, Parameters::kMean) + begin;
      for (int64_t i = 0; i < n.columns; ++i) n.mean[i] = mean[i];
    }
    k.inverse_deviation(n.columns, variance, parameters_.epsilon(), n.inverse_deviation);
    k.normalize(n);
  }

  void run_backward(const Step& step, TeamThread thread, bool accumulate) const {
    const int64_t begin = thread.begin(features_, kLine);
    Normalization n = arguments(step, thread);
    if (n.columns == 0) return;
    n.dy = context_.arena.floats(out_.gradient) + begin;
    n.dx = in_.needs_gradient ? context_.arena.floats(in_.gradient) + begin : nullptr;
    n.accumulate = accumulate;
    if (!parameters_.trainable()) return context_.kernels.scale_gradient(n);
    n.dgamma = parameters_.gradient(step, Parameters::kGamma) + begin;
    n.dbeta = parameters_.gradient(step, Parameters::kBeta) + begin;
    context_.kernels.normalize_gradient(n);
    parameters_.update(step, begin, begin + n.columns);
  }

  const std::string name_;
  Context& context_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const NormalizationParameters parameters_;
  const int64_t features_;
  int64_t outer_ = 1;
  Share share_ = Share::columns;
  Block mean_, inverse_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const BatchNormalization& layer, const Node& node,
                                          Context& context) {
  return std::make_unique<BatchNormalizationOperation>(layer, node, context);
}

}  // namespace muster::compute::cpu
