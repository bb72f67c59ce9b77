#include "operator/cmd/job/initial_weights.h"

#include "common/json.h"
#include "trainer/checkpoint/start/take_weights.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/spec/convert.h"

namespace muster::cmd {

namespace {

constexpr const char* kTraining = "spec.training";
constexpr size_t kMostNames = 8;  // of each list

}  // namespace

std::string look_at_initial_weights(const Document& document, const std::filesystem::path& folder,
                                    const spec::LookUp& look_up) {
  const Json* training = document.find(kTraining);
  if (training == nullptr || !given(*training, "initializeFrom")) return "";
  const auto model = spec::model_on_data(document, kTraining, look_up);
  if (!model) return "";
  const spec::TrainingSpec spec = spec::to_training_spec(*training);
  const compute::ParameterLayout layout = compute::build_graph(*model).layout;
  const std::string path = child_path(kTraining, "initializeFrom");
  const std::string field = document.locate(path) + ": " + path;
  std::vector<float> values(layout.size());
  const auto weights = checkpoint::take_weights(
      field, (folder / spec.initialize_from).lexically_normal(), layout, values,
      spec.initialize_options, compute::published_names(model->name));
  if (weights.is_complete()) return "";
  return field + ": " + weights.text(spec.initialize_from, kMostNames);
}

std::string check_initial_weights(const JobSource& source) {
  const bool distributed = has_role(source.job, api::Role::ps);
  const auto folder = trainer_folder(source, distributed ? api::Role::ps : leader_of(source.job));
  if (!folder) return "";
  return look_at_initial_weights(source.document, *folder, look_here(source.document.source()));
}

}  // namespace muster::cmd
