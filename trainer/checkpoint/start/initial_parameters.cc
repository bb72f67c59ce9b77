#include "trainer/checkpoint/start/initial_parameters.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/program/log.h"
#include "trainer/checkpoint/start/take_weights.h"
#include "trainer/compute/initialize.h"
#include "trainer/compute/models/catalogue.h"

namespace muster::checkpoint {

void fill_initial_parameters(const spec::TrainingSpec& spec, const compute::ParameterLayout& layout,
                             std::span<float> parameters) {
  compute::initialize_parameters(layout, spec.seed, parameters);
  if (spec.initialize_from.empty()) return;
  const TakenWeights weights =
      take_weights("initializeFrom", spec.initialize_from, layout, parameters,
                   spec.initialize_options, compute::published_names(spec.model.name));
  const bool mostly_other = weights.mismatched.size() > weights.taken.size();
  log::write(mostly_other ? log::Level::warning : log::Level::info,
             "initializeFrom: " + weights.text(spec.initialize_from, layout.tensors().size()),
             nullptr);
  log::info(fmt::format("initializeFrom: taken: {}", fmt::join(weights.taken, ", ")));
}

}  // namespace muster::checkpoint
