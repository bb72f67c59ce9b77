#include "trainer/compute/cpu/program/context.h"

#include "trainer/compute/cpu/program/normalized_value.h"

namespace muster::compute::cpu {

int64_t Context::tensor_index(const std::string& name) const {
  const auto& tensors = graph.layout.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

ValueBlocks::ValueBlocks() = default;
ValueBlocks::ValueBlocks(ValueBlocks&&) noexcept = default;
ValueBlocks::~ValueBlocks() = default;

ValueBlocks& Context::output_of(const Node& convolution) {
  return value(compute::output_of(fusions, convolution));
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
  if (step.average != nullptr) update.average = step.average + at;
  context.kernels.update(update);
}

namespace {

int64_t list_nonzeros(const Context& context, const ValueBlocks& value, const Step& step,
                      TeamThread thread) {
  const SparseValue& sparse = *value.sparse;
  ListNonzeros list;
  list.rows = step.rows;
  list.begin = thread.begin(value.width, kLine);
  list.end = thread.end(value.width, kLine);
  list.x = context.own_columns(value.data, value, thread);
  list.ldx = value.stride;
  list.list = sparse.of(context.arena, thread);
  list.words = sparse.words;
  if (step.training) list.masks = reinterpret_cast<uint32_t*>(context.arena.integers(sparse.masks));
  return context.kernels.list_nonzeros(list);
}

int64_t count_nonzeros(const Context& context, const ValueBlocks& value, const Step& step,
                       TeamThread thread) {
  const int64_t begin = thread.begin(value.width, kLine);
  const int64_t columns = thread.end(value.width, kLine) - begin;
  const float* x = context.own_columns(value.data, value, thread) + begin;
  int64_t count = 0;
  for (int64_t row = 0; row < step.rows; ++row) {
    count += context.kernels.count_nonzero(columns, x + row * value.stride);
  }
  return count;
}

}  // namespace

void find_nonzeros(const Context& context, const ValueBlocks& value, const Step& step,
                   TeamThread thread) {
  const int64_t count = value.sparse->active ? list_nonzeros(context, value, step, thread)
                                             : count_nonzeros(context, value, step, thread);
  context.arena.integers(value.sparse->nonzeros)[thread.index * kLine] =
      static_cast<int32_t>(count);
}

}  // namespace muster::compute::cpu
