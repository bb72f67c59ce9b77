#include "operator/cmd/job/initial_weights.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/text/listed.h"
#include "trainer/checkpoint/start/take_weights.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/spec/convert.h"

namespace muster::cmd {

namespace {

constexpr const char* kTraining = "spec.training";
constexpr size_t kMostNames = 8;  // most names in each list

// Whether the model has a part that is not trained.
bool freezes(const Json& model) {
  const Json& patterns = member(model, "freeze");
  if (patterns.is_array() && !patterns.empty()) return true;
  for (const Json& layer : member(model, "layers"))
    for (const Json& fields : layer)
      if (fields.is_object() && !bool_or(fields, "trainable", true)) return true;
  return false;
}

bool is_random(const compute::Initializer& initializer) {
  return initializer.kind != compute::InitializerKind::zeros &&
         initializer.kind != compute::InitializerKind::constant;
}

// Names the tensors that are not trained and begin with random numbers because they are not in
// `taken`; "" if there are none.
std::string frozen_text(const compute::ParameterLayout& layout,
                        const std::vector<std::string>& taken) {
  std::vector<std::string> names;
  for (const compute::ParameterTensor& tensor : layout.tensors())
    if (tensor.segment == compute::Segment::frozen && is_random(tensor.initializer) &&
        std::ranges::find(taken, tensor.name) == taken.end())
      names.push_back(tensor.name);
  if (names.empty()) return "";
  return "frozen with the random numbers of their initializers: " + listed(names, kMostNames);
}

}  // namespace

std::string look_at_initial_weights(const Document& document, const std::filesystem::path& folder,
                                    const spec::LookUp& look_up) {
  const Json* training = document.find(kTraining);
  if (training == nullptr || training->is_null()) return "";
  if (!given(*training, "initializeFrom") && !freezes(member(*training, "model"))) return "";
  const auto model = spec::model_on_data(document, kTraining, look_up);
  if (!model) return "";
  const spec::TrainingSpec spec = spec::to_training_spec(*training);
  const compute::ParameterLayout layout = compute::build_graph(*model).layout;
  const std::string path = child_path(kTraining, "initializeFrom");
  const std::string field = document.locate(path) + ": " + path;
  if (spec.initialize_from.empty()) {
    const std::string frozen = frozen_text(layout, {}), model_path = child_path(kTraining, "model");
    return frozen.empty() ? "" : document.locate(model_path) + ": " + model_path + ": " + frozen;
  }
  std::vector<float> values(layout.size());
  const auto weights = checkpoint::take_weights(
      field, (folder / spec.initialize_from).lexically_normal(), layout, values,
      spec.initialize_options, compute::published_names(model->name));
  if (weights.is_complete()) return "";
  const std::string frozen = frozen_text(layout, weights.taken);
  return field + ": " + weights.text(spec.initialize_from, kMostNames) +
         (frozen.empty() ? "" : "; " + frozen);
}

std::string check_initial_weights(const JobSource& source) {
  const bool distributed = has_role(source.job, api::Role::ps);
  const auto folder = trainer_folder(source, distributed ? api::Role::ps : leader_of(source.job));
  if (!folder) return "";
  return look_at_initial_weights(source.document, *folder, look_here(source.document.source()));
}

}  // namespace muster::cmd
