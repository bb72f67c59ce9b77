#include <algorithm>

#include "trainer/compute/cpu/layers/activation.h"
#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {
namespace {

// A thread owns the kernel's rows for its share of the input's columns, and the slots of these
// rows. They are one stretch of memory that forward, gradients and update read and write in order,
// and that no other thread touches. (If threads owned columns, they would exchange as little, but
// hardware prefetching would run on into the columns of other threads.) The forward product is a
// sum of the threads' parts; all threads read the whole gradient of the output.
class DenseOperation : public Operation {
 public:
  DenseOperation(const Dense& dense, const Node& node, Context& context)
      : name_(node.name),
        context_(context),
        kernels_(context.kernels),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        activation_(dense.activation),
        trainable_(node.trainable),
        units_(dense.units),
        features_(in_.width),
        // If there are too few columns for all threads, work on the output is shared by rows and
        // not by columns.
        share_(units_ < kLine * context.threads ? Share::rows : Share::columns),
        row_stride_(round_up(context.max_rows, kLine)),
        kernel_(context.tensor_index(node.parameters[0])),
        bias_(dense.use_bias ? context.tensor_index(node.parameters[1]) : -1) {
    const auto& tensors = context.graph.layout.tensors();
    kernel_offset_ = static_cast<int64_t>(tensors[static_cast<size_t>(kernel_)].offset);
    if (bias_ >= 0) bias_offset_ = static_cast<int64_t>(tensors[static_cast<size_t>(bias_)].offset);
    if (context.threads > 1) part_ = context.add_own(part_floats());
    if (trainable_) scratch_ = context.add_own(kScratch);
    if (trainable_ && out_.plane > 0) gathered_ = context.add_own(context.max_rows * dy_floats());
    if (in_.needs_gradient) {
      transposed_ = context.arena.add(round_up(units_, kLine) * row_stride_ * 4);
      product_ = context.add_own(round_up(features_, kLine) * row_stride_);
    }
  }

  void forward(Program& program) override {
    std::vector<Access> accesses{reads(in_.data, Share::columns)};
    if (in_.sparse) accesses.push_back(reads(in_.sparse->values, Share::columns));
    // A single thread writes the output itself.
    accesses.push_back(part_ ? writes(part_, Share::own) : writes(out_.data, share_));
    program.add(name_ + " product", accesses,
                [this](const Step& step, TeamThread thread) { multiply(step, thread); });
    accesses = {writes(out_.data, share_)};
    if (part_) accesses.push_back(reads(part_, Share::all));
    if (out_.sparse) {
      accesses.push_back(writes(out_.sparse->values, Share::columns));
      accesses.push_back(writes(out_.sparse->masks, Share::columns));
    }
    program.add(name_ + " activation", accesses, [this](const Step& step, TeamThread thread) {
      finish(step, cut(step, thread), thread);
      if (out_.sparse) find_nonzeros(context_, out_, step, thread);
    });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    std::vector<Access> accesses{reads(out_.data, share_), writes(out_.gradient, share_)};
    if (in_.needs_gradient) accesses.push_back(writes(transposed_, share_));
    program.add(name_ + " output gradient", accesses, [this](const Step& step, TeamThread thread) {
      output_gradient(cut(step, thread), thread);
    });
    if (in_.needs_gradient) {
      const bool accumulate = context_.claim_gradient(in_);
      program.add(name_ + " input gradient",
                  {reads(transposed_, Share::all), writes(in_.gradient, Share::columns)},
                  [this, accumulate](const Step& step, TeamThread thread) {
                    input_gradient(step, thread, accumulate);
                  });
    }
    if (!trainable_) return;
    accesses = {reads(in_.data, Share::columns), reads(out_.gradient, Share::all)};
    if (in_.sparse) accesses.push_back(reads(in_.sparse->masks, Share::columns));
    program.add(name_ + " weight gradient", accesses, [this](const Step& step, TeamThread thread) {
      bias_gradient(step, thread.begin(units_, kLine), thread.end(units_, kLine), thread);
      weight_gradient(step, thread.begin(features_, kLine), thread.end(features_, kLine), thread);
    });
  }

 private:
  // The piece of a kernel for one update: its columns of dy fit in the first-level cache, and the
  // pages of its rows fit in the translation buffer.
  static constexpr int64_t kPieceRows = 64;
  static constexpr int64_t kPieceColumns = 256;
  static constexpr int64_t kScratch = 16 * kPieceColumns;  // floats of a kernel's gradient

  struct Cut {
    int64_t row, rows, column, columns;
  };

  // The factors of a kernel's gradient.
  struct Factors {
    const float* x;   // the thread's own columns
    const float* dy;  // all columns
    int64_t ldy;
  };

  // Rows [begin, end) of the kernel, `columns` of them from `column` on.
  struct Piece {
    int64_t begin, end, column, columns;
  };

  // Returns a thread's share of the output.
  Cut cut(const Step& step, TeamThread thread) const {
    if (share_ == Share::rows) {
      const int64_t row = thread.begin(step.rows);
      return {row, thread.end(step.rows) - row, 0, units_};
    }
    const int64_t column = thread.begin(units_, kLine);
    return {0, step.rows, column, thread.end(units_, kLine) - column};
  }

  int64_t row_floats() const { return round_up(units_, kLine); }
  // The row length of dy. It is not a power of two, because rows of dy would then compete for the
  // same sets of the first-level cache.
  int64_t dy_floats() const { return round_up(units_, 2 * kLine) + kLine; }
  int64_t part_floats() const { return context_.max_rows * row_floats(); }

  // Computes the part of x W that comes from the thread's features.
  void multiply(const Step& step, TeamThread thread) const {
    const int64_t begin = thread.begin(features_, kLine), end = thread.end(features_, kLine);
    float* y =
        part_ ? context_.own(part_, part_floats(), thread) : context_.arena.floats(out_.data);
    const int64_t ldy = part_ ? row_floats() : out_.stride;
    const float* w = step.parameters + kernel_offset_;
    if (in_.sparse && in_.sparse->active) {
      const SparseValue& sparse = *in_.sparse;
      kernels_.sparse_forward({step.rows, units_, (end - begin + kSlot - 1) / kSlot,
                               sparse.of(context_.arena, thread), w, units_, y, ldy});
    } else {
      const float* x = context_.own_columns(in_.data, in_, thread) + begin;
      kernels_.gemm(
          {step.rows, units_, end - begin, x, in_.stride, 1, w + begin * units_, units_, y, ldy});
    }
  }

  void finish(const Step& step, const Cut& c, TeamThread thread) const {
    float* y = context_.own_columns(out_.data, out_, thread) + c.row * out_.stride + c.column;
    if (part_) {
      kernels_.sum_parts(c.rows, c.columns, context_.threads, Context::own_stride(part_floats()),
                         context_.arena.floats(part_) + c.row * row_floats() + c.column,
                         row_floats(), y, out_.stride);
    }
    const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_offset_ + c.column;
    activate(kernels_, activation_, c.rows, c.columns, y, out_.stride, bias);
  }

  // Computes dy *= activation'(y) in place, and transposes dy.
  void output_gradient(const Cut& c, TeamThread thread) const {
    const int64_t at = c.row * out_.stride + c.column;
    const float* y = context_.own_columns(out_.data, out_, thread) + at;
    float* dy = context_.own_columns(out_.gradient, out_, thread) + at;
    if (activation_ != Activation::linear) {
      activation_gradient(kernels_, activation_, c.rows, c.columns, y, out_.stride, dy, dy, false);
    }
    if (!in_.needs_gradient) return;
    float* to = context_.arena.floats(transposed_) + c.column * row_stride_ + c.row;
    kernels_.transpose(c.rows, c.columns, dy, out_.stride, to, row_stride_);
  }

  // Computes dx^T = W dy^T for the thread's features. The vectors run over samples, so nothing
  // large is transposed.
  void input_gradient(const Step& step, TeamThread thread, bool accumulate) const {
    const int64_t begin = thread.begin(features_, kLine), end = thread.end(features_, kLine);
    float* product = context_.own(product_, round_up(features_, kLine) * row_stride_, thread);
    kernels_.gemm({end - begin, round_up(step.rows, kernels_.lanes), units_,
                   step.parameters + kernel_offset_ + begin * units_, units_, 1,
                   context_.arena.floats(transposed_), row_stride_, product, row_stride_});
    kernels_.transpose_back(step.rows, end - begin, product, row_stride_,
                            context_.own_columns(in_.gradient, in_, thread) + begin, in_.stride,
                            accumulate);
  }

  void bias_gradient(const Step& step, int64_t begin, int64_t end, TeamThread thread) const {
    if (bias_ < 0 || begin == end) return;
    kernels_.sum_rows(step.rows, end - begin,
                      context_.own_columns(out_.gradient, out_, thread) + begin, out_.stride,
                      step.gradients + bias_offset_ + begin);
    update_piece(context_, step, bias_, begin, end);
  }

  // Returns the output's gradient with all columns side by side, because every thread reads them
  // many times.
  const float* gather(const Step& step, TeamThread thread) const {
    if (!gathered_) return context_.arena.floats(out_.gradient);
    float* all = context_.own(gathered_, context_.max_rows * dy_floats(), thread);
    for (int m = 0; m < thread.count; ++m) {
      const TeamThread other{m, thread.count};
      const int64_t begin = other.begin(units_, kLine);
      kernels_.copy(step.rows, other.end(units_, kLine) - begin,
                    context_.own_columns(out_.gradient, out_, other) + begin, out_.stride,
                    all + begin, dy_floats(), false);
    }
    return all;
  }

  void weight_gradient(const Step& step, int64_t begin, int64_t end, TeamThread thread) const {
    const Factors factors{context_.own_columns(in_.data, in_, thread), gather(step, thread),
                          gathered_ ? dy_floats() : out_.stride};
    if (step.rules == nullptr) {
      weight_product(step, factors, {begin, end, 0, units_},
                     step.gradients + kernel_offset_ + begin * units_, units_);
      return;
    }
    for (int64_t f = begin; f < end; f += kPieceRows) {
      for (int64_t c = 0; c < units_; c += kPieceColumns) {
        update_kernel(step, factors,
                      {f, std::min(f + kPieceRows, end), c, std::min(kPieceColumns, units_ - c)},
                      thread);
      }
    }
  }

  void update_kernel(const Step& step, const Factors& factors, const Piece& piece,
                     TeamThread thread) const {
    float* g = context_.own(scratch_, kScratch, thread);
    if (units_ % kLine != 0) {
      update_ragged(step, factors, piece, g);
    } else if (in_.sparse && in_.sparse->active) {
      kernels_.sparse_update(sparse_gradient(factors, piece, g, 0), update_of(step, piece));
    } else {
      kernels_.gemm_update(dense_gradient(step, factors, piece, nullptr, 0),
                           update_of(step, piece));
    }
  }

  // Here neighbouring rows share vectors, so this function first computes the gradient of some rows
  // and then updates them in one stretch.
  void update_ragged(const Step& step, const Factors& factors, const Piece& piece, float* g) const {
    const bool whole = piece.columns == units_;
    const int64_t ldg = whole ? units_ : round_up(piece.columns, kLine);
    const int64_t height = kScratch / ldg / 8 * 8;
    for (int64_t f = piece.begin; f < piece.end; f += height) {
      const Piece block{f, std::min(f + height, piece.end), piece.column, piece.columns};
      weight_product(step, factors, block, g, ldg);
      Update update = update_of(step, block);
      update.gradients = g;
      update.gradient_stride = ldg;
      if (whole) {
        update.columns *= update.rows;
        update.rows = 1;
      }
      kernels_.update(update);
    }
  }

  SparseWeightGradient sparse_gradient(const Factors& factors, const Piece& piece, float* g,
                                       int64_t ldg) const {
    const SparseValue& sparse = *in_.sparse;
    return {piece.begin,
            piece.end,
            piece.columns,
            sparse.words,
            reinterpret_cast<const uint32_t*>(context_.arena.integers(sparse.masks)),
            factors.x,
            in_.stride,
            factors.dy + piece.column,
            factors.ldy,
            g,
            ldg};
  }

  Gemm dense_gradient(const Step& step, const Factors& factors, const Piece& piece, float* g,
                      int64_t ldg) const {
    return {piece.end - piece.begin,
            piece.columns,
            step.rows,
            factors.x + piece.begin,
            1,
            in_.stride,
            factors.dy + piece.column,
            factors.ldy,
            g,
            ldg};
  }

  // Computes x^T dy into `g`.
  void weight_product(const Step& step, const Factors& factors, const Piece& piece, float* g,
                      int64_t ldg) const {
    if (in_.sparse && in_.sparse->active) {
      kernels_.sparse_weight_gradient(sparse_gradient(factors, piece, g, ldg));
    } else {
      kernels_.gemm(dense_gradient(step, factors, piece, g, ldg));
    }
  }

  Update update_of(const Step& step, const Piece& piece) const {
    const int64_t at = kernel_offset_ + piece.begin * units_ + piece.column;
    Update update;
    update.rule = step.rules[kernel_];
    update.rows = piece.end - piece.begin;
    update.columns = piece.columns;
    update.parameters = step.parameters + at;
    update.first = step.slots[0] == nullptr ? nullptr : step.slots[0] + at;
    update.second = step.slots[1] == nullptr ? nullptr : step.slots[1] + at;
    update.average = step.average == nullptr ? nullptr : step.average + at;
    update.stride = units_;
    return update;
  }

  const std::string name_;
  Context& context_;
  const Kernels& kernels_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const Activation activation_;
  const bool trainable_;
  const int64_t units_, features_;
  const Share share_;
  const int64_t row_stride_;
  const int64_t kernel_, bias_;  // positions in the layout
  int64_t kernel_offset_ = 0, bias_offset_ = 0;
  Block part_;        // each thread's part of the output: [rows, row_floats()]
  Block scratch_;     // each thread's kernel gradient on its way into the update
  Block transposed_;  // dy^T: [units, row_stride]
  Block gathered_;    // each thread's copy of dy, where it lies in planes: [rows, dy_floats()]
  Block product_;     // each thread's dx^T: [features, row_stride]
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Dense& dense, const Node& node, Context& context) {
  return std::make_unique<DenseOperation>(dense, node, context);
}

}  // namespace muster::compute::cpu
