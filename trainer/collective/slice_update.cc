#include "trainer/collective/slice_update.h"

#include <algorithm>

namespace muster::collective {

using compute::Range;

SharedState::Shape shape_of(const GroupShape& group, const compute::Optimizer& optimizer) {
  SharedState::Shape shape;
  static_cast<GroupShape&>(shape) = group;
  shape.floats = optimizer.layout().size();
  shape.slots = optimizer.slot_names().size();
  if (optimizer.needs_whole_tensors()) {
    shape.tensors = optimizer.layout().tensors().size();
    shape.slices = compute::shard_ranges(optimizer.spec(), optimizer.layout(), group.members);
  }
  return shape;
}

SliceUpdate::SliceUpdate(const SharedState& state, const compute::Optimizer& optimizer)
    : state_(state),
      optimizer_(optimizer),
      tree_(state.shape().nodes(), SharedState::kTile, state.shape().rounded),
      tile_slots_(state.shape().slots) {
  static_assert(compute::TensorRatios::kChunk <= SharedState::kTile);
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

compute::UpdateArguments SliceUpdate::measure(int member,
                                              const compute::UpdateArguments& arguments) {
  compute::UpdateArguments result = arguments;
  if (!optimizer_.needs_whole_tensors()) return result;
  const Range slice = state_.shape().slices.at(static_cast<size_t>(member));
  if (!measured_ || measured_->range() != slice) measured_.emplace(optimizer_.layout(), slice);
  result.ratios = state_.ratios();
  measure(*measured_, arguments, state_.parameters(), slots_, state_.ratios());
  return result;
}

void SliceUpdate::measure(compute::TensorRatios& measured,
                          const compute::UpdateArguments& arguments, std::span<float> parameters,
                          std::span<const std::span<float>> slots, std::span<float> ratios) {
  const auto of_chunk = [&](Range chunk) {
    return std::span(tree_.sum(sums_, chunk.begin, chunk.size()), chunk.size());
  };
  measured.measure({0, measured.chunks()}, optimizer_, arguments, 0, parameters, of_chunk, slots);
  measured.write(optimizer_, ratios);
}

bool SliceUpdate::run(uint64_t step, int member, const compute::UpdateArguments& given) {
  const compute::UpdateArguments arguments = measure(member, given);
  const size_t end = state_.shape().first_tile(member + 1);
  for (size_t tile = state_.shape().first_tile(member); tile < end; ++tile) {
    if (!state_.begin_tile(step, member, tile)) return false;
    update(tile, arguments, state_.parameters(), slots_);
  }
  return state_.finish_slice(step, member);
}

// Returns the ratios to complete a step whose tiles `old_tiles` are not made. If no tile of a slice
// is made, the slice's ratios are measured here, because its member may not have measured them.
// Otherwise the member has left the ratios in the state, and has not begun another step.
std::vector<float> SliceUpdate::ratios_of(std::span<const size_t> old_tiles,
                                          const compute::UpdateArguments& arguments,
                                          std::span<float> parameters,
                                          std::span<const std::span<float>> slots) {
  const SharedState::Shape& shape = state_.shape();
  std::vector<float> ratios(shape.tensors, 1.0f);
  for (int member = 0; member < static_cast<int>(shape.slices.size()); ++member) {
    const Range slice = shape.slices[static_cast<size_t>(member)];
    if (std::ranges::binary_search(old_tiles, shape.first_tile(member))) {
      compute::TensorRatios measured(optimizer_.layout(), slice);
      measure(measured, arguments, parameters, slots, ratios);
      continue;
    }
    for (size_t i = 0; i < ratios.size(); ++i) {
      const Range tensor = optimizer_.layout().tensors()[i].range();
      if (slice.begin <= tensor.begin && tensor.begin < slice.end) ratios[i] = state_.ratios()[i];
    }
  }
  return ratios;
}

void SliceUpdate::extract(std::span<float> parameters, std::span<const std::span<float>> slots,
                          const compute::UpdateArguments& given) {
  const std::vector<size_t> old_tiles = state_.extract(parameters, slots);
  const std::vector<float> ratios = ratios_of(old_tiles, given, parameters, slots);
  compute::UpdateArguments arguments = given;
  arguments.ratios = ratios;
  for (const size_t tile : old_tiles) update(tile, arguments, parameters, slots);
}

}  // namespace muster::collective
