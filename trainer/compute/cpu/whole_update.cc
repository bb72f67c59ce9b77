#include "trainer/compute/cpu/whole_update.h"

#include <array>

namespace muster::compute::cpu {

WholeUpdate::WholeUpdate(const ParameterLayout& layout)
    : measured_(layout, {0, layout.size()}),
      ratios_(layout.tensors().size()),
      work_([this](host::TeamThread thread) {
        measure(thread);
        team_->barrier(thread);
        if (thread.index == 0) measured_.write(*optimizer_, ratios_);
        team_->barrier(thread);
        apply(thread);
      }) {}

void WholeUpdate::run(host::Team& team, const Optimizer& optimizer,
                      const UpdateArguments& arguments, std::span<float> parameters,
                      std::span<const float> gradients, std::span<const std::span<float>> slots) {
  team_ = &team;
  optimizer_ = &optimizer;
  arguments_ = arguments;
  arguments_.ratios = ratios_;
  parameters_ = parameters;
  gradients_ = gradients;
  slots_ = slots;
  team.run(work_);
}

void WholeUpdate::measure(host::TeamThread thread) {
  const auto chunks = static_cast<int64_t>(measured_.chunks());
  const auto of_chunk = [&](Range chunk) { return gradients_.subspan(chunk.begin, chunk.size()); };
  measured_.measure(
      {static_cast<size_t>(thread.begin(chunks)), static_cast<size_t>(thread.end(chunks))},
      *optimizer_, arguments_, 0, parameters_, of_chunk, slots_);
}

void WholeUpdate::apply(host::TeamThread thread) {
  const auto size = static_cast<int64_t>(parameters_.size());
  constexpr auto kGrain = static_cast<int64_t>(ParameterLayout::kAlignment);
  const Range range{static_cast<size_t>(thread.begin(size, kGrain)),
                    static_cast<size_t>(thread.end(size, kGrain))};
  std::array<std::span<float>, kMostSlots> slots;
  for (size_t slot = 0; slot < slots_.size(); ++slot)
    slots[slot] = slots_[slot].subspan(range.begin, range.size());
  optimizer_->apply(range, arguments_, parameters_.subspan(range.begin, range.size()),
                    gradients_.subspan(range.begin, range.size()),
                    std::span(slots).first(slots_.size()));
}

}  // namespace muster::compute::cpu
