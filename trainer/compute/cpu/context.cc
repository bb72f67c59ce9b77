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

namespace {

void list_nonzeros(const Context& context, const ValueBlocks& value, const Step& step,
                   Member member) {
  const SparseValue& sparse = *value.sparse;
  const Arena& arena = context.arena;
  const float* x = arena.floats(value.data);
  const int64_t slots = static_cast<int64_t>(sparse.slots.size());
  const size_t m = static_cast<size_t>(member.index);
  for (int64_t row = 0; row < step.rows; ++row) {
    for (int64_t i = sparse.first_slot[m]; i < sparse.first_slot[m + 1]; ++i) {
      const SparseValue::Slot& slot = sparse.slots[static_cast<size_t>(i)];
      const int64_t at = row * slots + i;
      arena.integers(sparse.counts)[at] =
          context.kernels.list_nonzero(slot.begin, slot.size, x + row * value.stride + slot.begin,
                                       arena.integers(sparse.indices) + at * kSlotEntries,
                                       arena.floats(sparse.values) + at * kSlotEntries);
    }
  }
  if (!step.training) return;
  context.kernels.nonzero_masks(step.rows, member.begin(value.width, kLine),
                                member.end(value.width, kLine), x, value.stride, sparse.words,
                                reinterpret_cast<uint32_t*>(arena.integers(sparse.masks)));
}

}  // namespace

void find_nonzeros(const Context& context, const ValueBlocks& value, const Step& step,
                   Member member) {
  const int64_t begin = member.begin(value.width, kLine);
  const int64_t columns = member.end(value.width, kLine) - begin;
  const float* x = context.arena.floats(value.data) + begin;
  int64_t nonzeros = 0;
  for (int64_t row = 0; row < step.rows; ++row) {
    nonzeros += context.kernels.count_nonzero(columns, x + row * value.stride);
  }
  context.arena.integers(value.sparse->nonzeros)[member.index * kLine] =
      static_cast<int32_t>(nonzeros);
  if (value.sparse->active) list_nonzeros(context, value, step, member);
}

}  // namespace muster::compute::cpu
