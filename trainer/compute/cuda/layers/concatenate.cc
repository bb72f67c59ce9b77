#include "trainer/compute/cuda/operation.h"

namespace muster::compute::cuda {
namespace {

// Concatenates along the last axis: each value is a matrix with some of the output's columns.
class ConcatenateOperation : public Operation {
 public:
  ConcatenateOperation(const Node& node, Context& context)
      : gpu_(context.gpu),
        out_(context.value(node.output)),
        last_(context.graph.values[static_cast<size_t>(node.output)].shape.back()),
        outer_(out_.width / last_) {
    int64_t at = 0;
    for (const int input : node.inputs) {
      const int64_t width = context.graph.values[static_cast<size_t>(input)].shape.back();
      pieces_.push_back({&context.value(input), width, at});
      at += width;
    }
  }

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      for (const Piece& piece : pieces_)
        gpu_.launch(Copy{step.rows * outer_, piece.width, piece.value->values(), piece.width,
                         out_.values() + piece.at, last_, false});
    });
  }

  void backward(Program& program) override {
    for (const Piece& piece : pieces_) {
      if (!piece.value->needs_gradient) continue;
      const bool accumulate = Context::claim_gradient(*piece.value);
      program.add([this, &piece, accumulate](const Step& step) {
        gpu_.launch(Copy{step.rows * outer_, piece.width, out_.gradients() + piece.at, last_,
                         piece.value->gradients(), piece.width, accumulate});
      });
    }
  }

 private:
  struct Piece {
    ValueMemory* value;
    int64_t width;  // size of the input's last axis
    int64_t at;     // place in the output's last axis
  };

  Gpu& gpu_;
  ValueMemory& out_;
  const int64_t last_, outer_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Concatenate&, const Node& node, Context& context) {
  return std::make_unique<ConcatenateOperation>(node, context);
}

}  // namespace muster::compute::cuda
