#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {
namespace {

// The output is the input's memory: there is nothing to do.
class ViewOperation : public Operation {
 public:
  void forward(Program&) override {}
  void backward(Program&) override {}
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Flatten&, const Node&, Context&) {
  return std::make_unique<ViewOperation>();
}

std::unique_ptr<Operation> make_operation(const Reshape&, const Node&, Context&) {
  return std::make_unique<ViewOperation>();
}

}  // namespace muster::compute::cpu
