#include <algorithm>

#include "trainer/compute/cuda/layers/convolution_output.h"
#include "trainer/compute/cuda/operation.h"
#include "trainer/compute/sliding.h"

namespace muster::compute::cuda {
namespace {

// A convolution by products of matrices: the part of the image under the window at each place is a
// row of a matrix, the patches. For a convolution of single places the patches are the image
// itself, if the image is floats in memory and the factors are floats too; or the image's `factor`,
// which is kept for the backward pass and for other convolutions, if the image is a normalized
// value and the factor can be indexed. Else the context's limit of patches decides how many samples
// are handled at once. Factors of bfloat16 are padded with zeros (convolution_output.h).
class ConvolutionOperation : public Operation {
 public:
  ConvolutionOperation(const Conv2d& layer, const Node& node, Context& context)
      : context_(context),
        in_(context.value(node.inputs[0])),
        out_(node, layer.use_bias, layer.activation, context, in_.normalized != nullptr),
        sliding_(sliding_of(layer.window, context.graph, node.inputs[0])),
        trainable_(node.trainable),
        half_(out_.half()),
        places_(places_of(sliding_)),
        filters_(layer.filters),
        depth_(sliding_.window_height * sliding_.window_width * sliding_.channels),
        stride_(padded(depth_, half_)),
        single_(depth_ == sliding_.channels && sliding_.down == 1 && sliding_.right == 1),
        as_it_is_(single_ && !in_.normalized && !half_),
        reads_factor_(single_ && in_.normalized &&
                      context.max_rows * places_ * stride_ < kMostNumbers),
        writes_factor_(reads_factor_ && !in_.factor),
        samples_(as_it_is_ || reads_factor_
                     ? context.max_rows
                     : std::clamp<int64_t>(context.most_patches / (places_ * stride_), 1,
                                           context.max_rows)),
        kernel_(context.offset_of(node.parameters[0])),
        rounded_kernel_(
            half_ ? context.rounded.add(kernel_, depth_, filters_, stride_, out_.stride()) : 0),
        padded_gradient_(context.gpu, is_padded() ? stride_ * out_.stride() : 0) {
    if (writes_factor_) {
      const int64_t numbers = context.max_rows * places_ * stride_;
      in_.factor = std::make_unique<GpuArray<char>>(context.gpu, bytes_of(numbers, half_));
    }
    if (as_it_is_ || reads_factor_) return;
    Context::check_size("the patches of one sample at a convolution", samples_ * places_ * stride_,
                        "a smaller image or window");
    // The gradients of patches are floats.
    context.patches.reserve(bytes_of(samples_ * places_ * stride_, false));
  }

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      if (writes_factor_) write_rows(step.rows * places_, in_.reader(), factor());
      for_samples(step, [&](int64_t first, int64_t count) {
        context_.gpu.multiply({count * places_, out_.stride(), stride_, patches(first, count),
                               stride_, false, kernel(step), out_.stride(), false,
                               out_.z() + first * places_ * out_.stride(), out_.stride()});
      });
      out_.forward(step);
    });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient()) return;
    const bool accumulate = in_.needs_gradient && Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      const Numbers dz = out_.gradient(step);
      if (trainable_) kernel_gradient(step, dz);
      if (in_.needs_gradient) image_gradient(step, dz, accumulate);
    });
  }

 private:
  void kernel_gradient(const Step& step, const Numbers& dz) const {
    float* gradient = step.gradients + kernel_;
    float* to = is_padded() ? padded_gradient_.data() : gradient;
    for_samples(step, [&](int64_t first, int64_t count) {
      context_.gpu.multiply({stride_, out_.stride(), count * places_, patches(first, count),
                             stride_, true, dz + first * places_ * out_.stride(), out_.stride(),
                             false, to, out_.stride(), first > 0});
    });
    if (is_padded())
      context_.gpu.launch(Copy{depth_, filters_, to, out_.stride(), gradient, filters_, false});
  }

  void image_gradient(const Step& step, const Numbers& dz, bool accumulate) const {
    for_samples(step, [&](int64_t first, int64_t count) {
      const Numbers dx = in_.gradient_numbers() + first * in_.width;
      const auto* matrix = static_cast<const float*>(context_.patches.data());
      context_.gpu.multiply({count * places_, depth_, out_.stride(),
                             dz + first * places_ * out_.stride(), out_.stride(), false,
                             kernel(step), out_.stride(), true, single_ ? dx : matrix,
                             single_ ? depth_ : stride_, single_ && accumulate});
      if (!single_)
        context_.gpu.launch(ScatterPatches{sliding_, count, matrix, stride_, dx, accumulate});
    });
  }

  template <class Function>
  void for_samples(const Step& step, Function function) const {
    for (int64_t first = 0; first < step.rows; first += samples_)
      function(first, std::min(samples_, step.rows - first));
  }

  bool is_padded() const { return stride_ != depth_ || out_.stride() != filters_; }
  Numbers kernel(const Step& step) const {
    return half_ ? context_.rounded.at(rounded_kernel_) : step.parameters + kernel_;
  }

  Numbers factor() const { return {in_.factor->data(), half_}; }

  // Writes single places; each place becomes a row.
  void write_rows(int64_t rows, const Reader& image, const Numbers& to) const {
    if (stride_ == depth_) {
      context_.gpu.launch(ReadValues{rows, depth_, image, to});
    } else {
      context_.gpu.launch(ReadRows{rows, depth_, image, to, stride_});
    }
  }

  // Asks for the patches of these samples.
  Numbers patches(int64_t first, int64_t count) const {
    if (reads_factor_) return factor() + first * places_ * stride_;
    const Reader image = in_.reader() + first * in_.width;
    if (as_it_is_) return image.z;
    const Numbers to{context_.patches.data(), half_};
    if (single_) {
      write_rows(count * places_, image, to);
    } else {
      context_.gpu.launch(GatherPatches{sliding_, count, image, to, stride_});
    }
    return to;
  }

  Context& context_;
  ValueMemory& in_;
  ConvolutionOutput out_;
  const Sliding sliding_;
  const bool trainable_;
  const bool half_;  // the factors of the products are bfloat16
  const int64_t places_, filters_;
  const int64_t depth_;   // number of values under the window
  const int64_t stride_;  // numbers from a patch to the next
  const bool single_, as_it_is_;
  const bool reads_factor_, writes_factor_;
  const int64_t samples_;         // number of samples handled at once
  const int64_t kernel_;          // offset
  const int64_t rounded_kernel_;  // the kernel's place in the rounded matrices
  GpuArray<float> padded_gradient_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Conv2d& layer, const Node& node, Context& context) {
  return std::make_unique<ConvolutionOperation>(layer, node, context);
}

}  // namespace muster::compute::cuda
