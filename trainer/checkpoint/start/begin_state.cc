#include "trainer/checkpoint/start/begin_state.h"

#include <algorithm>
#include <vector>

#include "common/program/time_ledger.h"
#include "trainer/checkpoint/start/initial_parameters.h"
#include "trainer/checkpoint/store/restore.h"

namespace muster::checkpoint {

void begin_state(const Store::Found* from, const spec::TrainingSpec& spec,
                 const compute::Optimizer& optimizer, compute::Range range,
                 std::span<float> parameters, std::span<const std::span<float>> slots) {
  const compute::ParameterLayout& layout = optimizer.layout();
  if (from != nullptr) {
    const Spending restoring(TimeUse::restoring);
    load(*from, layout, range, parameters, "");
    for (size_t i = 0; i < slots.size(); ++i)
      load(*from, layout, range, slots[i], optimizer.slot_names()[i] + "/");
    return;
  }
  if (range.size() == layout.size()) {
    fill_initial_parameters(spec, layout, parameters);
  } else {
    std::vector<float> whole(layout.size());
    fill_initial_parameters(spec, layout, whole);
    std::ranges::copy(std::span(whole).subspan(range.begin, range.size()), parameters.begin());
  }
  for (size_t i = 0; i < slots.size(); ++i) optimizer.start_slot(i, parameters, slots[i]);
}

}  // namespace muster::checkpoint
