#include <algorithm>

#include "trainer/compute/cpu/sliding.h"

namespace muster::compute::cpu {
namespace {

// A convolution as products of matrices: of patches, what the window covers at some places, with
// the kernel as a matrix of [window and channels, filters]. Patches are made a tile at a time,
// which stays in the second-level cache. A convolution of single places reads the image itself.
class ConvolutionOperation : public Operation {
 public:
  ConvolutionOperation(const Conv2d& layer, const Node& node, Context& context)
      : name_(node.name),
        context_(context),
        kernels_(context.kernels),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        sliding_(sliding_of(layer.window, context.graph, node.inputs[0])),
        activation_(layer.activation),
        trainable_(node.trainable),
        filters_(layer.filters),
        depth_(sliding_.window_height * sliding_.window_width * sliding_.channels),
        pointwise_(depth_ == sliding_.channels && sliding_.down == 1 && sliding_.right == 1),
        tile_places_(std::clamp<int64_t>(kTileFloats / depth_, kLeastPlaces, kMostPlaces)),
        kernel_(context.tensor_index(node.parameters[0])),
        bias_(layer.use_bias ? context.tensor_index(node.parameters[1]) : -1) {
    const auto& tensors = context.graph.layout.tensors();
    kernel_offset_ = tensors[static_cast<size_t>(kernel_)].offset;
    if (bias_ >= 0) bias_offset_ = tensors[static_cast<size_t>(bias_)].offset;
    tile_places_ = std::min(tile_places_, context.max_rows * places_of(sliding_));
    if (!pointwise_) tile_ = context.add_own(tile_floats());
    if (trainable_) weights_.emplace(context, depth_, filters_, kernel_, bias_);
    if (in_.needs_gradient) transposed_ = context.arena.add(depth_ * filters_ * 4);
  }

  void forward(Program& program) override {
    program.add(name_ + " product", {reads(in_.data, Share::all), writes(out_.data, Share::all)},
                [this](const Step& step, TeamThread thread) { run_forward(step, thread); });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    if (in_.needs_gradient) {
      program.add(name_ + " transposed kernel", {writes(transposed_, Share::own)},
                  [this](const Step& step, TeamThread thread) { transpose(step, thread); });
    }
    std::vector<Access> accesses{reads(in_.data, Share::rows), reads(out_.data, Share::rows),
                                 writes(out_.gradient, Share::rows)};
    if (weights_) accesses.push_back(writes(weights_->block(), Share::own));
    if (in_.needs_gradient) {
      accesses.push_back(reads(transposed_, Share::all));
      accesses.push_back(writes(in_.gradient, Share::rows));
    }
    const bool accumulate = in_.needs_gradient && context_.claim_gradient(in_);
    program.add(name_ + " gradients", accesses,
                [this, accumulate](const Step& step, TeamThread thread) {
                  run_backward(step, thread, accumulate);
                });
    if (weights_) weights_->add_sum(program, name_ + " weight gradient");
  }

 private:
  static constexpr int64_t kTileFloats = 64 * 1024;
  static constexpr int64_t kLeastPlaces = 96;
  static constexpr int64_t kMostPlaces = 512;

  int64_t tile_floats() const { return tile_places_ * depth_; }
  float* tile_of(TeamThread thread) const { return context_.own(tile_, tile_floats(), thread); }

  // Returns the patches of places [begin, end) of a sample as a matrix with rows of depth_ floats.
  const float* patches(const float* x, int64_t begin, int64_t end, float* tile) const {
    if (pointwise_) return x + begin * depth_;
    kernels_.gather_patches({sliding_, begin, end, const_cast<float*>(x), tile, depth_});
    return tile;
  }

  void run_forward(const Step& step, TeamThread thread) const {
    const float* w = step.parameters + kernel_offset_;
    const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_offset_;
    float* tile = pointwise_ ? nullptr : tile_of(thread);
    for_lines(sliding_, step.rows, thread, [&](const Lines& lines) {
      const float* x = context_.arena.floats(in_.data) + lines.sample * in_.stride;
      float* y = context_.arena.floats(out_.data) + lines.sample * out_.stride;
      const int64_t last = lines.end * sliding_.out_width;
      for (int64_t at = lines.begin * sliding_.out_width; at < last; at += tile_places_) {
        const int64_t end = std::min(at + tile_places_, last);
        float* to = y + at * filters_;
        kernels_.gemm({end - at, filters_, depth_, patches(x, at, end, tile), depth_, 1, w,
                       filters_, to, filters_});
        activate(kernels_, activation_, end - at, filters_, to, filters_, bias);
      }
    });
  }

  // [filters, depth], of which each thread writes some columns.
  void transpose(const Step& step, TeamThread thread) const {
    const int64_t begin = thread.begin(depth_, kLine), end = thread.end(depth_, kLine);
    kernels_.transpose(end - begin, filters_, step.parameters + kernel_offset_ + begin * filters_,
                       filters_, context_.arena.floats(transposed_) + begin, depth_);
  }

  void run_backward(const Step& step, TeamThread thread, bool accumulate) const {
    if (weights_) weights_->clear(thread);
    if (in_.needs_gradient && !pointwise_ && !accumulate)
      clear_samples(context_, in_, step, thread);
    for (int64_t sample = thread.begin(step.rows); sample < thread.end(step.rows); ++sample) {
      const int64_t places = places_of(sliding_);
      const float* x = context_.arena.floats(in_.data) + sample * in_.stride;
      const float* y = context_.arena.floats(out_.data) + sample * out_.stride;
      float* dy = context_.arena.floats(out_.gradient) + sample * out_.stride;
      if (activation_ != Activation::linear)
        activation_gradient(kernels_, activation_, places, filters_, y, filters_, dy, dy, false);
      for (int64_t at = 0; at < places; at += tile_places_) {
        const int64_t end = std::min(at + tile_places_, places);
        if (weights_) weight_gradient(thread, x, dy, at, end);
        if (in_.needs_gradient) input_gradient(thread, sample, dy, at, end, accumulate);
      }
    }
  }

  void weight_gradient(TeamThread thread, const float* x, const float* dy, int64_t begin,
                       int64_t end) const {
    static constexpr float kOne = 1.0f;
    const float* a = patches(x, begin, end, pointwise_ ? nullptr : tile_of(thread));
    Gemm gemm{depth_,
              filters_,
              end - begin,
              a,
              1,
              depth_,
              dy + begin * filters_,
              filters_,
              weights_->of(thread),
              filters_,
              true};
    kernels_.gemm(gemm);
    if (bias_ < 0) return;
    // The sum over the places is a product with ones.
    gemm.m = 1;
    gemm.a = &kOne;
    gemm.a_column = 0;
    gemm.c = weights_->bias_of(thread);
    kernels_.gemm(gemm);
  }

  void input_gradient(TeamThread thread, int64_t sample, const float* dy, int64_t begin,
                      int64_t end, bool accumulate) const {
    float* dx = context_.arena.floats(in_.gradient) + sample * in_.stride;
    Gemm gemm{end - begin,
              depth_,
              filters_,
              dy + begin * filters_,
              filters_,
              1,
              context_.arena.floats(transposed_),
              depth_,
              dx + begin * depth_,
              depth_,
              accumulate};
    if (pointwise_) return kernels_.gemm(gemm);
    gemm.c = tile_of(thread);
    gemm.accumulate = false;
    kernels_.gemm(gemm);
    kernels_.scatter_patches({sliding_, begin, end, dx, gemm.c, depth_});
  }

  const std::string name_;
  Context& context_;
  const Kernels& kernels_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const Sliding sliding_;
  const Activation activation_;
  const bool trainable_;
  const int64_t filters_, depth_;
  const bool pointwise_;
  int64_t tile_places_;
  const int64_t kernel_, bias_;  // positions in the layout
  size_t kernel_offset_ = 0, bias_offset_ = 0;
  Block tile_;        // each thread's patches, or their gradient
  Block transposed_;  // the kernel: [filters, depth]
  std::optional<WeightGradient> weights_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Conv2d& layer, const Node& node, Context& context) {
  return std::make_unique<ConvolutionOperation>(layer, node, context);
}

}  // namespace muster::compute::cpu
