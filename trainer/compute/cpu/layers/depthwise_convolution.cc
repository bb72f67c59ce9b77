#include <algorithm>

#include "trainer/compute/cpu/layers/activation.h"
#include "trainer/compute/cpu/layers/sliding.h"
#include "trainer/compute/cpu/program/normalized_value.h"
#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {
namespace {

// The last rows under a window, for rows that must be computed before they are read. Rows are
// requested from the top to the bottom, and each row is computed once.
class RowRing {
 public:
  RowRing(float* memory, int64_t slots, int64_t row, int64_t first)
      : memory_(memory), slots_(slots), row_(row), next_(first) {}

  // Computes all rows up to `y`: compute(y, memory).
  template <typename Compute>
  const float* at(int64_t y, Compute compute) {
    for (; next_ <= y; ++next_) compute(next_, slot(next_));
    return slot(y);
  }

 private:
  float* slot(int64_t y) const { return memory_ + y % slots_ * row_; }

  float* memory_;
  const int64_t slots_, row_;
  int64_t next_;
};

// Goes through the output of a sample row by row. A row of the input's gradient is finished after
// the last output row whose window covers it.
class DepthwiseOperation : public Operation {
 public:
  DepthwiseOperation(const DepthwiseConv2d& layer, const Node& node, Context& context)
      : name_(node.name),
        context_(context),
        kernels_(context.kernels),
        in_(context.value(node.inputs[0])),
        out_(context.output_of(node)),
        sliding_(sliding_of(layer.window, context.graph, node.inputs[0])),
        activation_(layer.activation),
        in_row_(sliding_.width * sliding_.channels),
        out_row_(sliding_.out_width * sliding_.channels),
        kernel_(context.tensor_index(node.parameters[0])),
        bias_(layer.use_bias ? context.tensor_index(node.parameters[1]) : -1) {
    const auto& tensors = context.graph.layout.tensors();
    kernel_offset_ = tensors[static_cast<size_t>(kernel_)].offset;
    if (bias_ >= 0) bias_offset_ = tensors[static_cast<size_t>(bias_)].offset;
    const int64_t slots = sliding_.window_height;
    if (node.trainable)
      weights_.emplace(context, slots * sliding_.window_width, sliding_.channels, kernel_, bias_);
    if (in_.normalized) in_ring_ = context.add_own(slots * in_row_);
    if (out_.normalized) out_ring_ = context.add_own(slots * out_row_);
    if (in_.half || out_.half) row_ = context.add_own(std::max(in_row_, out_row_));
    zeros_ = context.arena.add(std::max(in_row_, out_row_) * 4);
    pointers_.resize(static_cast<size_t>(context.threads * slots));
  }

  void forward(Program& program) override {
    std::vector<Access> accesses{reads(in_.data, Share::all), writes(out_.data, Share::all)};
    if (in_.normalized) append(accesses, in_.normalized->value_accesses());
    if (out_.normalized) accesses.push_back(out_.normalized->statistics_access());
    program.add(name_, accesses,
                [this](const Step& step, TeamThread thread) { run_forward(step, thread); });
    if (out_.normalized) out_.normalized->add_forward(program);
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    if (out_.normalized) out_.normalized->add_backward(program);
    if (!weights_ && !in_.needs_gradient) return;
    std::vector<Access> accesses{reads(in_.data, Share::rows), reads(out_.data, Share::rows),
                                 writes(out_.gradient, Share::rows)};
    if (weights_) accesses.push_back(writes(weights_->block(), Share::own));
    if (in_.needs_gradient) accesses.push_back(writes(in_.gradient, Share::rows));
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

 private:
  const float** pointers(TeamThread thread) const {
    return pointers_.data() + thread.index * sliding_.window_height;
  }
  const float* zeros() const { return context_.arena.floats(zeros_); }
  float* row_of(TeamThread thread) const {
    return context_.own(row_, std::max(in_row_, out_row_), thread);
  }
  // The rings of one thread, for output rows from `begin` on.
  RowRing in_ring(TeamThread thread, int64_t begin) const {
    const int64_t slots = sliding_.window_height;
    float* memory = context_.own(in_ring_, slots * in_row_, thread);
    return {memory, slots, in_row_, std::max<int64_t>(0, begin * sliding_.down - sliding_.top)};
  }
  RowRing out_ring(TeamThread thread) const {
    const int64_t slots = sliding_.window_height;
    float* memory = context_.own(out_ring_, slots * out_row_, thread);
    return {memory, slots, out_row_, 0};
  }

  // Fills in the rows of the image under the window of output row `oy`.
  void find_rows(Numbers x, int64_t oy, RowRing& ring, const float** rows) const {
    const int64_t first = oy * sliding_.down - sliding_.top;
    for (int64_t r = 0; r < sliding_.window_height; ++r) {
      const int64_t y = first + r;
      if (y < 0 || y >= sliding_.height) {
        rows[r] = zeros();
      } else if (in_.normalized) {
        rows[r] = ring.at(y, [&](int64_t row, float* memory) {
          in_.normalized->values(x + row * in_row_, memory, sliding_.width);
        });
      } else {
        rows[r] = x.floats() + y * in_row_;
      }
    }
  }

  void run_forward(const Step& step, TeamThread thread) const {
    const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_offset_;
    const bool collects = out_.normalized && out_.normalized->collects(step);
    if (collects) out_.normalized->clear_statistics(thread);
    for_lines(sliding_, step.rows, thread, [&](const Lines& lines) {
      const Numbers x = context_.data(in_, lines.sample);
      RowRing ring = in_ring(thread, lines.begin);
      DepthwiseRow d{sliding_, pointers(thread), step.parameters + kernel_offset_};
      for (int64_t oy = lines.begin; oy < lines.end; ++oy) {
        find_rows(x, oy, ring, pointers(thread));
        const Numbers to = context_.data(out_, lines.sample) + oy * out_row_;
        d.y = begin_write(to, row_of(thread), out_row_, false);
        kernels_.depthwise_row(d);
        if (collects) {
          out_.normalized->add_statistics(thread, to, d.y, sliding_.out_width);
        } else if (out_.normalized) {
          end_write(kernels_, to, d.y, out_row_);
        } else {
          activate(kernels_, activation_, sliding_.out_width, sliding_.channels, d.y,
                   sliding_.channels, bias);
        }
      }
    });
  }

  void run_backward(const Step& step, TeamThread thread, bool accumulate) const {
    if (weights_) weights_->clear(thread);
    if (sums_) in_.normalized->clear_sums(thread);
    for (int64_t i = thread.begin(step.rows); i < thread.end(step.rows); ++i) {
      const Numbers x = context_.data(in_, i);
      RowRing in_rows = in_ring(thread, 0), out_rows = out_ring(thread);
      int64_t finished = 0;  // number of finished rows of the input's gradient
      for (int64_t oy = 0; oy < sliding_.out_height; ++oy) {
        const float* dy = output_gradient(i, oy, out_rows);
        if (weights_) {
          find_rows(x, oy, in_rows, pointers(thread));
          weight_gradient(dy, thread);
        }
        if (!in_.needs_gradient) continue;
        const bool last = oy + 1 == sliding_.out_height;
        const int64_t end =
            last ? sliding_.height
                 : std::min(sliding_.height, (oy + 1) * sliding_.down - sliding_.top);
        for (; finished < end; ++finished)
          input_gradient(step, thread, i, finished, out_rows, accumulate);
      }
    }
  }

  // Returns row `oy` of the gradient of the convolution's raw output.
  const float* output_gradient(int64_t i, int64_t oy, RowRing& ring) const {
    const Numbers y = context_.data(out_, i);
    const Numbers dy = context_.gradient(out_, i);
    if (out_.normalized) {
      return ring.at(oy, [&](int64_t row, float* memory) {
        out_.normalized->gradient(y + row * out_row_, dy + row * out_row_, memory,
                                  sliding_.out_width);
      });
    }
    float* row = dy.floats() + oy * out_row_;
    if (activation_ != Activation::linear)
      activation_gradient(kernels_, activation_, sliding_.out_width, sliding_.channels,
                          y.floats() + oy * out_row_, sliding_.channels, row, row, false);
    return row;
  }

  void weight_gradient(const float* dy, TeamThread thread) const {
    DepthwiseRow d{sliding_, pointers(thread)};
    d.dy = dy;
    d.dw = weights_->of(thread);
    kernels_.depthwise_weight_gradient_row(d);
    if (bias_ < 0) return;
    static constexpr float kOne = 1.0f;
    const int64_t channels = sliding_.channels;
    kernels_.gemm({1, channels, sliding_.out_width, &kOne, 1, 0, dy, channels,
                   weights_->bias_of(thread), channels, true});
  }

  void input_gradient(const Step& step, TeamThread thread, int64_t i, int64_t y, RowRing& out_rows,
                      bool accumulate) const {
    const Sliding& s = sliding_;
    const float** rows = pointers(thread);
    for (int64_t r = 0; r < s.window_height; ++r) {
      const int64_t at = y + s.top - r;
      rows[r] = s.down == 1 ? zeros() : nullptr;
      if (at >= 0 && at % s.down == 0 && at / s.down < s.out_height)
        rows[r] = out_gradient_row(i, at / s.down, out_rows);
    }
    DepthwiseGradientRow d{s, rows, step.parameters + kernel_offset_};
    const Numbers to = context_.gradient(in_, i) + y * in_row_;
    d.dx = begin_write(to, row_of(thread), in_row_, accumulate);
    d.accumulate = accumulate;
    kernels_.depthwise_input_gradient_row(d);
    if (sums_) {
      in_.normalized->add_sums(thread, context_.data(in_, i) + y * in_row_, to, d.dx, s.width);
    } else {
      end_write(kernels_, to, d.dx, in_row_);
    }
  }

  // Returns a row that output_gradient() has returned before.
  const float* out_gradient_row(int64_t i, int64_t oy, RowRing& ring) const {
    if (out_.normalized) return ring.at(oy, [](int64_t, float*) {});
    return context_.gradient(out_, i).floats() + oy * out_row_;
  }

  const std::string name_;
  Context& context_;
  const Kernels& kernels_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const Sliding sliding_;
  const Activation activation_;
  const int64_t in_row_, out_row_;  // floats
  const int64_t kernel_, bias_;     // positions in the layout
  size_t kernel_offset_ = 0, bias_offset_ = 0;
  std::optional<WeightGradient> weights_;
  bool sums_ = false;  // whether this operation adds up the sums of its input
  Block in_ring_, out_ring_, zeros_;
  Block row_;  // each thread's row of floats before rounding to bfloat16
  // Each thread's pointers, one for each row of the window.
  mutable std::vector<const float*> pointers_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const DepthwiseConv2d& layer, const Node& node,
                                          Context& context) {
  return std::make_unique<DepthwiseOperation>(layer, node, context);
}

}  // namespace muster::compute::cpu
