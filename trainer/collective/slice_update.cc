#include "trainer/collective/slice_update.h"

namespace muster::collective {

SliceUpdate::SliceUpdate(const SharedState& state, const compute::Optimizer& optimizer)
    : state_(state),
      optimizer_(optimizer),
      tree_(state.shape().nodes(), SharedState::kTile, state.shape().rounded),
      tile_slots_(state.shape().slots) {
  const size_t count = state.shape().nodes().size();
  for (size_t i = 0; i < count; ++i) sums_.push_back(state.sum(i).data());
  for (size_t i = 0; i < state.shape().slots; ++i) slots_.push_back(state.slot(i));
}

void SliceUpdate::update(size_t tile, const compute::UpdateArguments& arguments,
                         std::span<float> parameters, std::span<const std::span<float>> slots) {
  const compute::Range range = state_.shape().tile(tile);
  for (size_t i = 0; i < slots.size(); ++i)
    tile_slots_[i] = slots[i].subspan(range.begin, range.size());
  const float* const sum = tree_.sum(sums_, range.begin, range.size());
  optimizer_.apply(range, arguments, parameters.subspan(range.begin, range.size()),
                   {sum, range.size()}, tile_slots_);
}

bool SliceUpdate::run(uint64_t step, int member, const compute::UpdateArguments& arguments) {
  const size_t end = state_.shape().first_tile(member + 1);
  for (size_t tile = state_.shape().first_tile(member); tile < end; ++tile) {
    if (!state_.begin_tile(step, member, tile)) return false;
    update(tile, arguments, state_.parameters(), slots_);
  }
  return state_.finish_slice(step, member);
}

void SliceUpdate::extract(std::span<float> parameters, std::span<const std::span<float>> slots,
                          const compute::UpdateArguments& arguments) {
  for (const size_t tile : state_.extract(parameters, slots))
    update(tile, arguments, parameters, slots);
}

}  // namespace muster::collective
