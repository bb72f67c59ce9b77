#include "trainer/checkpoint/initial_parameters.h"

#include <fmt/format.h>

#include "common/log.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/compute/engine.h"

namespace muster::checkpoint {

void fill_initial_parameters(const spec::TrainingSpec& spec, const compute::ParameterLayout& layout,
                             std::span<float> parameters) {
  compute::initialize_parameters(layout, spec.seed, parameters);
  if (spec.initialize_from.empty()) return;
  const auto others = take_weights("initializeFrom", spec.initialize_from, layout, parameters);
  // `muster run` has already reported this, with the line of its manifest.
  if (!others.empty())
    log::info(fmt::format("initializeFrom: {} has no {}: they begin with their initializers",
                          spec.initialize_from, fmt::join(others, ", ")));
}

}  // namespace muster::checkpoint
