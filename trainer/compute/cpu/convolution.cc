#include "trainer/compute/cpu/convolution.h"

namespace muster::compute::cpu {

ConvolutionOperation::ConvolutionOperation(const Conv2d& layer, const Node& node, Context& context)
    : name_(node.name),
      context_(context),
      kernels_(context.kernels),
      in_(context.value(node.inputs[0])),
      out_(context.output_of(node)),
      sliding_(sliding_of(layer.window, context.graph, node.inputs[0])),
      activation_(layer.activation),
      filters_(layer.filters),
      depth_(sliding_.window_height * sliding_.window_width * sliding_.channels),
      kernel_(context.tensor_index(node.parameters[0])),
      bias_(layer.use_bias ? context.tensor_index(node.parameters[1]) : -1) {
  const auto& tensors = context.graph.layout.tensors();
  kernel_offset_ = tensors[static_cast<size_t>(kernel_)].offset;
  if (bias_ >= 0) bias_offset_ = tensors[static_cast<size_t>(bias_)].offset;
  if (node.trainable) weights_.emplace(context, depth_, filters_, kernel_, bias_);
  if (in_.needs_gradient) rearranged_ = context.arena.add(depth_ * filters_ * 4);
}

void ConvolutionOperation::forward(Program& program) {
  std::vector<Access> accesses{reads(in_.data, Share::all), writes(out_.data, Share::all)};
  if (in_.normalized) append(accesses, in_.normalized->value_accesses());
  if (out_.normalized) accesses.push_back(out_.normalized->statistics_access());
  program.add(name_ + " product", accesses,
              [this](const Step& step, TeamThread thread) { run_forward(step, thread); });
  if (out_.normalized) out_.normalized->add_forward(program);
}

void ConvolutionOperation::backward(Program& program) {
  if (!out_.needs_gradient) return;
  if (out_.normalized) out_.normalized->add_backward(program);
  if (!weights_ && !in_.needs_gradient) return;
  std::vector<Access> accesses{reads(in_.data, Share::rows), reads(out_.data, Share::rows),
                               writes(out_.gradient, Share::rows)};
  if (weights_) accesses.push_back(writes(weights_->block(), Share::own));
  if (in_.needs_gradient) {
    program.add(name_ + " kernel", {writes(rearranged_, Share::own)},
                [this](const Step& step, TeamThread thread) { rearrange(step, thread); });
    accesses.push_back(reads(rearranged_, Share::all));
    accesses.push_back(writes(in_.gradient, Share::rows));
  }
  if (out_.normalized) append(accesses, out_.normalized->gradient_accesses());
  const bool accumulate = in_.needs_gradient && context_.claim_gradient(in_);
  sums_ = in_.normalized && in_.needs_gradient && in_.normalized->claim_sums();
  if (sums_) append(accesses, in_.normalized->sums_accesses());
  program.add(name_ + " gradients", accesses,
              [this, accumulate](const Step& step, TeamThread thread) {
                run_backward(step, thread, accumulate);
              });
  if (weights_) weights_->add_sum(program, name_ + " weight gradient");
}

void ConvolutionOperation::run_forward(const Step& step, TeamThread thread) const {
  if (out_.normalized && out_.normalized->collects(step)) out_.normalized->clear_statistics(thread);
  for_lines(sliding_, step.rows, thread,
            [&](const Lines& lines) { forward_lines(step, thread, lines); });
}

void ConvolutionOperation::run_backward(const Step& step, TeamThread thread,
                                        bool accumulate) const {
  if (weights_) weights_->clear(thread);
  if (sums_) in_.normalized->clear_sums(thread);
  for (int64_t i = thread.begin(step.rows); i < thread.end(step.rows); ++i)
    backward_sample(thread, i, accumulate);
}

void ConvolutionOperation::finish(const Step& step, TeamThread thread, float* y,
                                  int64_t places) const {
  if (out_.normalized) {
    if (out_.normalized->collects(step)) out_.normalized->add_statistics(thread, y, places);
    return;
  }
  const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_offset_;
  activate(kernels_, activation_, places, filters_, y, filters_, bias);
}

void ConvolutionOperation::output_gradient(int64_t sample, int64_t begin, int64_t end,
                                           float* to) const {
  const float* y = data(out_, sample) + begin * filters_;
  const float* dy = gradient(out_, sample) + begin * filters_;
  if (out_.normalized) {
    out_.normalized->gradient(y, dy, to, end - begin);
  } else {
    activation_gradient(kernels_, activation_, end - begin, filters_, y, filters_, dy, to, false);
  }
}

// The sum over the rows is a product with ones.
void ConvolutionOperation::bias_gradient(TeamThread thread, const float* dy, int64_t rows) const {
  static constexpr float kOne = 1.0f;
  if (bias_ < 0) return;
  kernels_.gemm(
      {1, filters_, rows, &kOne, 1, 0, dy, filters_, weights_->bias_of(thread), filters_, true});
}

std::unique_ptr<Operation> make_operation(const Conv2d& layer, const Node& node, Context& context) {
  const Window& window = layer.window;
  const bool unit = window.strides[0] == 1 && window.strides[1] == 1;
  const bool single = window.size[0] == 1 && window.size[1] == 1;
  return unit && !single ? make_unit_convolution(layer, node, context)
                         : make_patch_convolution(layer, node, context);
}

}  // namespace muster::compute::cpu
