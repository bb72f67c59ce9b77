#include "trainer/compute/cpu/operation.h"

namespace muster::compute::cpu {

int64_t Context::tensor_index(const std::string& name) const {
  const auto& tensors = graph.layout.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

void update_piece(const Context& context, const Step& step, int64_t tensor, int64_t begin,
                  int64_t end) {
  if (step.rules == nullptr || begin == end) return;
  const int64_t at =
      static_cast<int64_t>(context.graph.layout.tensors()[static_cast<size_t>(tensor)].offset) +
      begin;
  Update update;
  update.rule = step.rules[tensor];
  update.rows = 1;
  update.columns = end - begin;
  update.parameters = step.parameters + at;
  update.gradients = step.gradients + at;
  if (step.slots[0] != nullptr) update.first = step.slots[0] + at;
  if (step.slots[1] != nullptr) update.second = step.slots[1] + at;
  context.kernels.update(update);
}

}  // namespace muster::compute::cpu
