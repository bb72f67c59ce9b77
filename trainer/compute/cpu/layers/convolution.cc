#include "trainer/compute/cpu/layers/convolution.h"

#include "trainer/compute/cpu/layers/activation.h"

namespace muster::compute::cpu {

ConvolutionOperation::ConvolutionOperation(const Conv2d& layer, const Node& node, Context& context,
                                           const Kind& kind)
    : name(node.name),
      context(context),
      kernels(context.kernels),
      in(context.value(node.inputs[0])),
      out(context.output_of(node)),
      sliding(sliding_of(layer.window, context.graph, node.inputs[0])),
      activation(layer.activation),
      filters(layer.filters),
      depth(sliding.window_height * sliding.window_width * sliding.channels),
      kernel(context.tensor_index(node.parameters[0])),
      bias(layer.use_bias ? context.tensor_index(node.parameters[1]) : -1),
      joined(kind.single && in.stride == in.width && out.stride == out.width),
      lines_at_once(kind.lines) {
  const auto& tensors = context.graph.layout.tensors();
  kernel_offset = tensors[static_cast<size_t>(kernel)].offset;
  if (bias >= 0) bias_offset = tensors[static_cast<size_t>(bias)].offset;
  if (node.trainable) weights.emplace(context, depth, filters, kernel, bias);
  const int64_t floats = kind.matrices * sliding.channels * filters;
  if (in.needs_gradient)
    rearranged = context.arena.add((floats > 0 ? floats : depth * filters) * 4);
}

void ConvolutionOperation::forward(Program& program) {
  std::vector<Access> accesses{reads(in.data, Share::all), writes(out.data, Share::all)};
  if (in.normalized) append(accesses, in.normalized->value_accesses());
  if (out.normalized) accesses.push_back(out.normalized->statistics_access());
  append(accesses, more_accesses());
  program.add(name + " product", accesses,
              [this](const Step& step, TeamThread thread) { run_forward(step, thread); });
  if (out.normalized) out.normalized->add_forward(program);
}

void ConvolutionOperation::backward(Program& program) {
  if (!out.needs_gradient) return;
  if (out.normalized) out.normalized->add_backward(program);
  if (!weights && !in.needs_gradient) return;
  std::vector<Access> accesses{reads(in.data, Share::rows), reads(out.data, Share::rows),
                               writes(out.gradient, Share::rows)};
  if (weights) accesses.push_back(writes(weights->block(), Share::own));
  if (in.needs_gradient) {
    std::vector<Access> kernel_accesses = more_accesses();
    kernel_accesses.push_back(writes(rearranged, Share::own));
    program.add(name + " kernel", kernel_accesses,
                [this](const Step& step, TeamThread thread) { rearrange(step, thread); });
    accesses.push_back(reads(rearranged, Share::all));
    accesses.push_back(writes(in.gradient, Share::rows));
  }
  if (out.normalized) append(accesses, out.normalized->gradient_accesses());
  const bool accumulate = in.needs_gradient && context.claim_gradient(in);
  sums = in.normalized && in.needs_gradient && in.normalized->claim_sums();
  if (sums) append(accesses, in.normalized->sums_accesses());
  program.add(name + " gradients", accesses,
              [this, accumulate](const Step& step, TeamThread thread) {
                run_backward(step, thread, accumulate);
              });
  if (weights) weights->add_sum(program, name + " weight gradient");
}

void ConvolutionOperation::run_forward(const Step& step, TeamThread thread) const {
  if (out.normalized && out.normalized->collects(step)) out.normalized->clear_statistics(thread);
  const auto run = [&](const Lines& lines) { forward_lines(step, thread, lines); };
  const int64_t all = step.rows * sliding.out_height;
  if (joined) return run({0, thread.begin(all), thread.end(all)});
  for_lines(sliding, step.rows, thread, run, lines_at_once);
}

void ConvolutionOperation::run_backward(const Step& step, TeamThread thread,
                                        bool accumulate) const {
  if (weights) weights->clear(thread);
  if (sums) in.normalized->clear_sums(thread);
  backward_samples(thread, thread.begin(step.rows), thread.end(step.rows), accumulate);
}

void ConvolutionOperation::finish(const Step& step, TeamThread thread, Numbers to, float* y,
                                  int64_t places) const {
  if (out.normalized && out.normalized->collects(step)) {
    out.normalized->add_statistics(thread, to, y, places);
  } else if (out.normalized) {
    end_write(kernels, to, y, places * filters);
  } else {
    const float* added = bias < 0 ? nullptr : step.parameters + bias_offset;
    activate(kernels, activation, places, filters, y, filters, added);
  }
}

void ConvolutionOperation::finish_gradient(TeamThread thread, Numbers x, Numbers to,
                                           const float* dx, int64_t places) const {
  if (sums) {
    in.normalized->add_sums(thread, x, to, dx, places);
  } else {
    end_write(kernels, to, dx, places * sliding.channels);
  }
}

void ConvolutionOperation::output_gradient(int64_t sample, int64_t begin, int64_t end,
                                           float* to) const {
  const Numbers y = context.data(out, sample) + begin * filters;
  const Numbers dy = context.gradient(out, sample) + begin * filters;
  if (out.normalized) {
    out.normalized->gradient(y, dy, to, end - begin);
  } else {
    activation_gradient(kernels, activation, end - begin, filters, y.floats(), filters, dy.floats(),
                        to, false);
  }
}

// The sum over the rows is a product with ones.
void ConvolutionOperation::bias_gradient(TeamThread thread, const float* dy, int64_t rows) const {
  static constexpr float kOne = 1.0f;
  if (bias < 0) return;
  kernels.gemm(
      {1, filters, rows, &kOne, 1, 0, dy, filters, weights->bias_of(thread), filters, true});
}

std::unique_ptr<Operation> make_operation(const Conv2d& layer, const Node& node, Context& context) {
  const Window& window = layer.window;
  const bool unit = window.strides[0] == 1 && window.strides[1] == 1;
  const bool single = window.size[0] == 1 && window.size[1] == 1;
  if (!unit || single) return make_patch_convolution(layer, node, context);
  return suits_winograd(sliding_of(window, context.graph, node.inputs[0]), layer.filters)
             ? make_winograd_convolution(layer, node, context)
             : make_unit_convolution(layer, node, context);
}

}  // namespace muster::compute::cpu
