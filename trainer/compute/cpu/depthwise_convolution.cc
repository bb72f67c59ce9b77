#include "trainer/compute/cpu/sliding.h"

namespace muster::compute::cpu {
namespace {

class DepthwiseOperation : public Operation {
 public:
  DepthwiseOperation(const DepthwiseConv2d& layer, const Node& node, Context& context)
      : name_(node.name),
        context_(context),
        kernels_(context.kernels),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        sliding_(sliding_of(layer.window, context.graph, node.inputs[0])),
        activation_(layer.activation),
        kernel_(context.tensor_index(node.parameters[0])),
        bias_(layer.use_bias ? context.tensor_index(node.parameters[1]) : -1) {
    const auto& tensors = context.graph.layout.tensors();
    kernel_offset_ = tensors[static_cast<size_t>(kernel_)].offset;
    if (bias_ >= 0) bias_offset_ = tensors[static_cast<size_t>(bias_)].offset;
    const int64_t places = sliding_.window_height * sliding_.window_width;
    if (node.trainable) weights_.emplace(context, places, sliding_.channels, kernel_, bias_);
  }

  void forward(Program& program) override {
    program.add(name_, {reads(in_.data, Share::all), writes(out_.data, Share::all)},
                [this](const Step& step, TeamThread thread) { run_forward(step, thread); });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    std::vector<Access> accesses{reads(in_.data, Share::rows), reads(out_.data, Share::rows),
                                 writes(out_.gradient, Share::rows)};
    if (weights_) accesses.push_back(writes(weights_->block(), Share::own));
    if (in_.needs_gradient) accesses.push_back(writes(in_.gradient, Share::rows));
    const bool accumulate = in_.needs_gradient && context_.claim_gradient(in_);
    program.add(name_ + " gradients", accesses,
                [this, accumulate](const Step& step, TeamThread thread) {
                  run_backward(step, thread, accumulate);
                });
    if (weights_) weights_->add_sum(program, name_ + " weight gradient");
  }

 private:
  void run_forward(const Step& step, TeamThread thread) const {
    const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_offset_;
    for_lines(sliding_, step.rows, thread, [&](const Lines& lines) {
      Depthwise d{sliding_, lines.begin, lines.end};
      d.x = context_.arena.floats(in_.data) + lines.sample * in_.stride;
      d.w = step.parameters + kernel_offset_;
      d.y = context_.arena.floats(out_.data) + lines.sample * out_.stride;
      kernels_.depthwise(d);
      const int64_t line = sliding_.out_width * sliding_.channels;
      activate(kernels_, activation_, (lines.end - lines.begin) * sliding_.out_width,
               sliding_.channels, d.y + lines.begin * line, sliding_.channels, bias);
    });
  }

  void run_backward(const Step& step, TeamThread thread, bool accumulate) const {
    const int64_t channels = sliding_.channels, places = places_of(sliding_);
    if (weights_) weights_->clear(thread);
    if (in_.needs_gradient && !accumulate) clear_samples(context_, in_, step, thread);
    for (int64_t sample = thread.begin(step.rows); sample < thread.end(step.rows); ++sample) {
      const float* y = context_.arena.floats(out_.data) + sample * out_.stride;
      float* dy = context_.arena.floats(out_.gradient) + sample * out_.stride;
      if (activation_ != Activation::linear)
        activation_gradient(kernels_, activation_, places, channels, y, channels, dy, dy, false);
      Depthwise d{sliding_, 0, sliding_.out_height};
      d.x = context_.arena.floats(in_.data) + sample * in_.stride;
      d.w = step.parameters + kernel_offset_;
      d.dy = dy;
      if (weights_) weight_gradient(d, thread);
      if (!in_.needs_gradient) continue;
      d.dx = context_.arena.floats(in_.gradient) + sample * in_.stride;
      kernels_.depthwise_input_gradient(d);
    }
  }

  void weight_gradient(Depthwise d, TeamThread thread) const {
    d.dw = weights_->of(thread);
    kernels_.depthwise_weight_gradient(d);
    if (bias_ < 0) return;
    static constexpr float kOne = 1.0f;
    const int64_t channels = sliding_.channels;
    kernels_.gemm({1, channels, places_of(sliding_), &kOne, 1, 0, d.dy, channels,
                   weights_->bias_of(thread), channels, true});
  }

  const std::string name_;
  Context& context_;
  const Kernels& kernels_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const Sliding sliding_;
  const Activation activation_;
  const int64_t kernel_, bias_;  // positions in the layout
  size_t kernel_offset_ = 0, bias_offset_ = 0;
  std::optional<WeightGradient> weights_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const DepthwiseConv2d& layer, const Node& node,
                                          Context& context) {
  return std::make_unique<DepthwiseOperation>(layer, node, context);
}

}  // namespace muster::compute::cpu
