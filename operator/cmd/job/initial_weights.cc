#include "operator/cmd/job/initial_weights.h"

#include <fmt/format.h>

#include "common/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/compute/graph.h"

namespace muster::cmd {

std::string check_initial_weights(const JobSource& source) {
  const std::string from = string_or(source.job.training, "initializeFrom", "");
  const bool distributed = has_role(source.job, api::Role::ps);
  const auto folder = trainer_folder(source, distributed ? api::Role::ps : leader_of(source.job));
  if (from.empty() || !folder) return "";
  const auto model =
      spec::model_on_data(source.document, "spec.training", look_here(source.document.source()));
  if (!model) return "";
  const compute::ParameterLayout layout = compute::build_graph(*model).layout;
  const std::string path = "spec.training.initializeFrom";
  const std::string field = source.document.locate(path) + ": " + path;
  std::vector<float> values(layout.size());
  const auto others =
      checkpoint::take_weights(field, (*folder / from).lexically_normal(), layout, values);
  if (others.empty()) return "";
  return fmt::format("{}: {} has no {}: they begin with their initializers", field, from,
                     fmt::join(others, ", "));
}

}  // namespace muster::cmd
