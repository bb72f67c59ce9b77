#include <algorithm>

#include "trainer/compute/cpu/operation.h"

namespace muster::compute::cpu {
namespace {

// A member owns columns of the kernel, the bias and their slots: forward, weight gradient and
// update touch nothing else. Where there are too few columns for everybody ("narrow"), it owns rows
// of the kernel instead, and the forward product is split by samples.
class DenseOperation : public Operation {
 public:
  DenseOperation(const Dense& dense, const Node& node, Context& context)
      : name_(node.name),
        context_(context),
        kernels_(context.kernels),
        in_(context.values[static_cast<size_t>(node.inputs[0])]),
        out_(context.values[static_cast<size_t>(node.output)]),
        activation_(dense.activation),
        trainable_(node.trainable),
        units_(dense.units),
        features_(in_.width),
        narrow_(dense.units < kLine * context.threads),
        row_stride_(round_up(context.max_rows, kLine)),
        kernel_(context.tensor_index(node.parameters[0])),
        bias_(dense.use_bias ? context.tensor_index(node.parameters[1]) : -1) {
    const auto& tensors = context.graph.layout.tensors();
    kernel_offset_ = tensors[static_cast<size_t>(kernel_)].offset;
    if (bias_ >= 0) bias_offset_ = tensors[static_cast<size_t>(bias_)].offset;
    const int64_t lines = round_up(units_, kLine) / kLine;
    own_units_ = narrow_ ? units_ : round_up(lines, context.threads) / context.threads * kLine;
    if (trainable_) scratch_ = context.add_own(kScratch);
    if (in_.needs_gradient) {
      transposed_ = context.add_own(own_units_ * row_stride_);
      partial_ = context.add_own(features_ * row_stride_);
    }
  }

  void forward(Program& program) override {
    std::vector<Access> accesses;
    const Share share = narrow_ ? Share::rows : Share::all;
    accesses.push_back(reads(in_.data, share));
    if (in_.sparse) accesses.push_back(reads(in_.sparse->values, share));
    accesses.push_back(writes(out_.data, narrow_ ? Share::rows : Share::columns));
    program.add(name_ + " forward", accesses,
                [this](const Step& step, Member member) { run_forward(step, member); });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    if (narrow_) {
      backward_narrow(program);
    } else {
      backward_wide(program);
    }
  }

 private:
  static constexpr int64_t kScratch = 4096;  // floats of weight gradient between product and update

  void run_forward(const Step& step, Member member) const {
    const int64_t row = narrow_ ? member.begin(step.rows) : 0;
    const int64_t rows = (narrow_ ? member.end(step.rows) : step.rows) - row;
    const int64_t begin = narrow_ ? 0 : member.begin(units_, kLine);
    const int64_t columns = (narrow_ ? units_ : member.end(units_, kLine)) - begin;
    if (rows == 0 || columns == 0) return;
    const float* w = step.parameters + kernel_offset_ + begin;
    float* y = context_.arena.floats(out_.data) + row * out_.stride + begin;
    if (in_.sparse && in_.sparse->active) {
      const SparseValue& sparse = *in_.sparse;
      const int64_t slots = static_cast<int64_t>(sparse.slots.size());
      const SlotList list{slots, context_.arena.integers(sparse.counts) + row * slots,
                          context_.arena.integers(sparse.indices) + row * slots * kSlotEntries,
                          context_.arena.floats(sparse.values) + row * slots * kSlotEntries};
      kernels_.sparse_forward({rows, columns, list, w, units_, y, out_.stride});
    } else {
      const float* x = context_.arena.floats(in_.data) + row * in_.stride;
      kernels_.gemm({rows, columns, features_, x, in_.stride, 1, w, units_, y, out_.stride});
    }
    const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_offset_ + begin;
    switch (activation_) {
      case Activation::relu:
        return kernels_.bias_relu(rows, columns, y, out_.stride, bias);
      case Activation::sigmoid:
        return kernels_.bias_sigmoid(rows, columns, y, out_.stride, bias);
      default:
        return kernels_.bias_linear(rows, columns, y, out_.stride, bias);
    }
  }

  // dy *= activation'(y), in place.
  void activate(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    const int64_t at = row * out_.stride + column;
    const float* y = context_.arena.floats(out_.data) + at;
    float* dy = context_.arena.floats(out_.gradient) + at;
    if (activation_ == Activation::relu) {
      kernels_.relu_gradient(rows, columns, y, out_.stride, dy, dy, false);
    } else if (activation_ == Activation::sigmoid) {
      kernels_.sigmoid_gradient(rows, columns, y, out_.stride, dy, dy, false);
    }
  }

  void bias_gradient(const Step& step, int64_t begin, int64_t end) const {
    if (!trainable_ || bias_ < 0 || begin == end) return;
    kernels_.sum_rows(step.rows, end - begin, context_.arena.floats(out_.gradient) + begin,
                      out_.stride, step.gradients + bias_offset_ + begin);
    update_piece(context_, step, bias_, begin, end);
  }

  void backward_wide(Program& program) {
    std::vector<Access> accesses{reads(out_.data, Share::columns),
                                 writes(out_.gradient, Share::columns)};
    if (in_.needs_gradient) accesses.push_back(writes(partial_, Share::own));
    program.add(name_ + " input gradient", accesses, [this](const Step& step, Member member) {
      const int64_t begin = member.begin(units_, kLine), end = member.end(units_, kLine);
      activate(0, step.rows, begin, end - begin);
      bias_gradient(step, begin, end);
      if (in_.needs_gradient) partial_input_gradient(step, member, begin, end);
    });
    if (trainable_) {
      program.add(name_ + " weight gradient", weight_accesses(Share::columns),
                  [this](const Step& step, Member member) {
                    weight_gradient(step, member, 0, features_, member.begin(units_, kLine),
                                    member.end(units_, kLine));
                  });
    }
    if (!in_.needs_gradient) return;
    const bool accumulate = context_.claim_gradient(in_);
    program.add(name_ + " input gradient sum",
                {reads(partial_, Share::all), writes(in_.gradient, Share::columns)},
                [this, accumulate](const Step& step, Member member) {
                  const int64_t begin = member.begin(features_, kLine);
                  kernels_.reduce_transposed(
                      step.rows, member.end(features_, kLine) - begin, member.count,
                      Context::own_stride(features_ * row_stride_),
                      context_.arena.floats(partial_) + begin * row_stride_, row_stride_,
                      context_.arena.floats(in_.gradient) + begin, in_.stride, accumulate);
                });
  }

  void backward_narrow(Program& program) {
    if (activation_ != Activation::linear) {
      program.add(name_ + " activation gradient",
                  {reads(out_.data, Share::rows), writes(out_.gradient, Share::rows)},
                  [this](const Step& step, Member member) {
                    const int64_t row = member.begin(step.rows);
                    activate(row, member.end(step.rows) - row, 0, units_);
                  });
    }
    std::vector<Access> accesses{reads(out_.gradient, Share::all)};
    if (in_.needs_gradient) accesses.push_back(writes(in_.gradient, Share::columns));
    const bool accumulate = in_.needs_gradient && context_.claim_gradient(in_);
    program.add(name_ + " input gradient", accesses,
                [this, accumulate](const Step& step, Member member) {
                  if (in_.needs_gradient) narrow_input_gradient(step, member, accumulate);
                  if (member.index == 0) bias_gradient(step, 0, units_);
                });
    if (!trainable_) return;
    program.add(name_ + " weight gradient", weight_accesses(Share::all),
                [this](const Step& step, Member member) {
                  weight_gradient(step, member, member.begin(features_, kLine),
                                  member.end(features_, kLine), 0, units_);
                });
  }

  std::vector<Access> weight_accesses(Share gradient) const {
    std::vector<Access> accesses{reads(in_.data, Share::all), reads(out_.gradient, gradient)};
    if (in_.sparse) accesses.push_back(reads(in_.sparse->masks, Share::all));
    return accesses;
  }

  // Features [begin, end) by samples: W dy^T, dy cut to `columns`. Samples are the vectors, so that
  // nothing large is transposed.
  void transposed_product(const Step& step, int64_t begin, int64_t end, int64_t column,
                          int64_t columns, float* dy_transposed, float* product) const {
    kernels_.transpose(step.rows, columns, context_.arena.floats(out_.gradient) + column,
                       out_.stride, dy_transposed, row_stride_);
    const float* w = step.parameters + kernel_offset_ + begin * units_ + column;
    kernels_.gemm({end - begin, round_up(step.rows, kernels_.lanes), columns, w, units_, 1,
                   dy_transposed, row_stride_, product, row_stride_});
  }

  void partial_input_gradient(const Step& step, Member member, int64_t begin, int64_t end) const {
    transposed_product(step, 0, features_, begin, end - begin, own(transposed_, member, own_units_),
                       own(partial_, member, features_));
  }

  void narrow_input_gradient(const Step& step, Member member, bool accumulate) const {
    const int64_t begin = member.begin(features_, kLine), end = member.end(features_, kLine);
    float* product = own(partial_, member, features_);
    transposed_product(step, begin, end, 0, units_, own(transposed_, member, own_units_), product);
    kernels_.reduce_transposed(step.rows, end - begin, 1, 0, product, row_stride_,
                               context_.arena.floats(in_.gradient) + begin, in_.stride, accumulate);
  }

  float* own(Block block, Member member, int64_t lines) const {
    return context_.arena.floats(block) + member.index * Context::own_stride(lines * row_stride_);
  }

  // x^T dy for features [begin, end) and columns [column, last), into `g`.
  void weight_product(const Step& step, int64_t begin, int64_t end, int64_t column, int64_t columns,
                      float* g, int64_t ldg) const {
    const float* x = context_.arena.floats(in_.data);
    const float* dy = context_.arena.floats(out_.gradient) + column;
    if (in_.sparse && in_.sparse->active) {
      kernels_.sparse_weight_gradient(
          {begin, end, columns, in_.sparse->words,
           reinterpret_cast<const uint32_t*>(context_.arena.integers(in_.sparse->masks)), x,
           in_.stride, dy, out_.stride, g, ldg});
    } else {
      kernels_.gemm(
          {end - begin, columns, step.rows, x + begin, 1, in_.stride, dy, out_.stride, g, ldg});
    }
  }

  void weight_gradient(const Step& step, Member member, int64_t begin, int64_t end, int64_t column,
                       int64_t last) const {
    if (begin == end || column == last) return;
    if (step.rules == nullptr) {
      weight_product(step, begin, end, column, last - column,
                     step.gradients + kernel_offset_ + begin * units_ + column, units_);
      return;
    }
    // The gradient of a block small enough for the first-level cache is used up at once.
    float* g = context_.arena.floats(scratch_) + member.index * Context::own_stride(kScratch);
    const int64_t width = std::min<int64_t>(last - column, 256);
    const int64_t height = kScratch / round_up(width, kLine) / 8 * 8;
    for (int64_t c = column; c < last; c += width) {
      for (int64_t f = begin; f < end; f += height) {
        update_block(step, f, std::min(f + height, end), c, std::min(width, last - c), g);
      }
    }
  }

  void update_block(const Step& step, int64_t begin, int64_t end, int64_t column, int64_t columns,
                    float* g) const {
    const int64_t ldg = round_up(columns, kLine);
    weight_product(step, begin, end, column, columns, g, ldg);
    const int64_t at = static_cast<int64_t>(kernel_offset_) + begin * units_ + column;
    Update update;
    update.rule = step.rules[kernel_];
    update.rows = end - begin;
    update.columns = columns;
    update.parameters = step.parameters + at;
    update.first = step.slots[0] == nullptr ? nullptr : step.slots[0] + at;
    update.second = step.slots[1] == nullptr ? nullptr : step.slots[1] + at;
    update.stride = units_;
    update.gradients = g;
    update.gradient_stride = ldg;
    kernels_.update(update);
  }

  const std::string name_;
  Context& context_;
  const Kernels& kernels_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const Activation activation_;
  const bool trainable_;
  const int64_t units_, features_;
  const bool narrow_;
  const int64_t row_stride_;
  const int64_t kernel_, bias_;  // positions in the layout
  size_t kernel_offset_ = 0, bias_offset_ = 0;
  int64_t own_units_ = 0;  // the most columns a member owns
  Block scratch_;
  Block transposed_;  // dy^T: [own columns, row_stride]
  Block partial_;     // a member's part of the input's gradient, transposed: [features, row_stride]
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Dense& dense, const Node& node, Context& context) {
  return std::make_unique<DenseOperation>(dense, node, context);
}

}  // namespace muster::compute::cpu
