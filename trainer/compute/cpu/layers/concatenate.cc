#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {
namespace {

// Concatenates along the last axis; the axes before it are `outer` pieces of a row. The threads
// share the rows, because the inputs' columns are at other places in the output.
class ConcatenateOperation : public Operation {
 public:
  ConcatenateOperation(const Node& node, Context& context)
      : name_(node.name), context_(context), out_(context.value(node.output)) {
    const std::vector<int64_t>& shape =
        context.graph.values[static_cast<size_t>(node.output)].shape;
    last_ = shape.back();
    outer_ = out_.width / last_;
    int64_t at = 0;
    for (int input : node.inputs) {
      ValueBlocks& value = context.value(input);
      const int64_t width = value.width / outer_;
      pieces_.push_back({&value, width, at});
      at += width;
    }
  }

  void forward(Program& program) override {
    for (const Piece& piece : pieces_) {
      program.add(name_ + " forward",
                  {reads(piece.value->data, Share::rows), writes(out_.data, Share::rows)},
                  [this, &piece](const Step& step, TeamThread thread) {
                    const int64_t row = thread.begin(step.rows), end = thread.end(step.rows);
                    for (int64_t o = 0; o < outer_; ++o) {
                      context_.kernels.copy(end - row, piece.width,
                                            inside(piece, piece.value->data, row, o),
                                            piece.value->stride, outside(piece, out_.data, row, o),
                                            out_.stride, false);
                    }
                  });
    }
  }

  void backward(Program& program) override {
    for (const Piece& piece : pieces_) {
      if (!piece.value->needs_gradient) continue;
      const bool accumulate = context_.claim_gradient(*piece.value);
      program.add(name_ + " backward",
                  {reads(out_.gradient, Share::rows), writes(piece.value->gradient, Share::rows)},
                  [this, &piece, accumulate](const Step& step, TeamThread thread) {
                    const int64_t row = thread.begin(step.rows), end = thread.end(step.rows);
                    for (int64_t o = 0; o < outer_; ++o) {
                      context_.kernels.copy(end - row, piece.width,
                                            outside(piece, out_.gradient, row, o), out_.stride,
                                            inside(piece, piece.value->gradient, row, o),
                                            piece.value->stride, accumulate);
                    }
                  });
    }
  }

 private:
  struct Piece {
    ValueBlocks* value;
    int64_t width;  // size of the input's last axis
    int64_t at;     // place in the output's last axis
  };

  float* inside(const Piece& piece, Block block, int64_t row, int64_t outer) const {
    return context_.arena.floats(block) + row * piece.value->stride + outer * piece.width;
  }
  float* outside(const Piece& piece, Block block, int64_t row, int64_t outer) const {
    return context_.arena.floats(block) + row * out_.stride + outer * last_ + piece.at;
  }

  const std::string name_;
  Context& context_;
  ValueBlocks& out_;
  std::vector<Piece> pieces_;
  int64_t last_ = 1, outer_ = 1;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Concatenate&, const Node& node, Context& context) {
  return std::make_unique<ConcatenateOperation>(node, context);
}

}  // namespace muster::compute::cpu
