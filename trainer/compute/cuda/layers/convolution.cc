#include <algorithm>

#include "trainer/compute/cuda/operation.h"
#include "trainer/compute/sliding.h"

namespace muster::compute::cuda {
namespace {

// By products of matrices: what the window covers at each place is a row of a matrix
// (GatherPatches), which a convolution of single places has in its image itself. As many samples
// are done at once as that matrix is at most kMostFloats.
class ConvolutionOperation : public Operation {
 public:
  ConvolutionOperation(const Conv2d& layer, const Node& node, Context& context)
      : context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        sliding_(sliding_of(layer.window, context.graph, node.inputs[0])),
        activation_(layer.activation),
        trainable_(node.trainable),
        places_(places_of(sliding_)),
        filters_(layer.filters),
        depth_(sliding_.window_height * sliding_.window_width * sliding_.channels),
        single_(depth_ == sliding_.channels && sliding_.down == 1 && sliding_.right == 1),
        samples_(single_
                     ? context.max_rows
                     : std::clamp<int64_t>(kMostFloats / (places_ * depth_), 1, context.max_rows)),
        kernel_(context.offset_of(node.parameters[0])),
        bias_(layer.use_bias ? context.offset_of(node.parameters[1]) : -1) {
    if (!single_) context.reserve_patches(samples_ * places_ * depth_);
    if (trainable_ && bias_ >= 0) context.reserve_sums(context.max_rows * places_, filters_);
  }

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      for_samples(step, [&](int64_t first, int64_t count) {
        context_.gpu.multiply({count * places_, filters_, depth_, patches(first, count), depth_,
                               false, step.parameters + kernel_, filters_, false,
                               out_.values() + first * out_.width, filters_});
      });
      const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_;
      if (bias != nullptr || activation_ != Activation::linear)
        context_.gpu.launch(BiasActivation{step.rows * places_, filters_, out_.values(), bias,
                                           activation_, out_.values()});
    });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    const bool accumulate = in_.needs_gradient && Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      float* dy = out_.gradients();
      if (activation_ != Activation::linear)
        context_.gpu.launch(
            ActivationGradient{step.rows * out_.width, activation_, out_.values(), dy, dy, false});
      if (trainable_) {
        for_samples(step, [&](int64_t first, int64_t count) {
          context_.gpu.multiply({depth_, filters_, count * places_, patches(first, count), depth_,
                                 true, dy + first * out_.width, filters_, false,
                                 step.gradients + kernel_, filters_, first > 0});
        });
        if (bias_ >= 0)
          context_.sum_columns(step.rows * places_, filters_, dy, step.gradients + bias_);
      }
      if (!in_.needs_gradient) return;
      for_samples(step, [&](int64_t first, int64_t count) {
        float* dx = in_.gradients() + first * in_.width;
        context_.gpu.multiply({count * places_, depth_, filters_, dy + first * out_.width, filters_,
                               false, step.parameters + kernel_, filters_, true,
                               single_ ? dx : context_.patches(), depth_, single_ && accumulate});
        if (!single_)
          context_.gpu.launch(ScatterPatches{sliding_, count, context_.patches(), dx, accumulate});
      });
    });
  }

 private:
  static constexpr int64_t kMostFloats = int64_t{64} << 20;

  template <class Function>
  void for_samples(const Step& step, Function function) const {
    for (int64_t first = 0; first < step.rows; first += samples_)
      function(first, std::min(samples_, step.rows - first));
  }

  const float* patches(int64_t first, int64_t count) const {
    const float* image = in_.values() + first * in_.width;
    if (single_) return image;
    context_.gpu.launch(GatherPatches{sliding_, count, image, context_.patches()});
    return context_.patches();
  }

  Context& context_;
  ValueMemory& in_;
  ValueMemory& out_;
  const Sliding sliding_;
  const Activation activation_;
  const bool trainable_;
  const int64_t places_, filters_;
  const int64_t depth_;  // floats under the window
  const bool single_;
  const int64_t samples_;        // at once
  const int64_t kernel_, bias_;  // offsets; -1: there is no bias
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Conv2d& layer, const Node& node, Context& context) {
  return std::make_unique<ConvolutionOperation>(layer, node, context);
}

}  // namespace muster::compute::cuda
