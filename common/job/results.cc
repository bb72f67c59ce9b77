#include "common/job/results.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/documents/json.h"
#include "common/documents/json_file.h"
#include "common/job/metric_name.h"

namespace muster {

namespace {

namespace fs = std::filesystem;

fs::path evaluations_in(const fs::path& folder) {
  return folder / "evaluations";
}

const Json& exported_step(const Json& result) {
  const Json& exported = member(result, "exportedStep");
  return exported.is_null() ? member(result, "step") : exported;
}

// The evaluation has `best` if it has found a better one than the one in result.json, which was
// written earlier.
void take_evaluation(const Json& evaluation, Json& results) {
  if (member(evaluation, "best").is_object()) results["best"] = evaluation["best"];
  for (const char* name : {"validation", "test"}) {
    const Json& metrics = member(evaluation, name);
    if (!metrics.is_object()) continue;
    results[name] = Json::object();
    for (const auto& [metric, value] : metrics.items()) {
      if (!value.is_object()) results[name][metric] = value;
      if (value.is_null()) results["notFinite"].push_back(metric_field(name, metric));
    }
  }
}

void make_absolute(const fs::path& folder, Json& object, const char* field) {
  const std::string path = string_or(object, field, "");
  if (!path.empty()) object[field] = (fs::absolute(folder) / path).lexically_normal().string();
}

void name_files(const fs::path& folder, Json& results) {
  for (const char* field : {"checkpoint", "model", "onnx"}) make_absolute(folder, results, field);
  if (member(results, "best").is_object()) make_absolute(folder, results["best"], "checkpoint");
}

}  // namespace

Json evaluation_of(const fs::path& folder, const Json& result) {
  const Json& step = exported_step(result);
  if (!step.is_number_integer()) return nullptr;
  return read_json_or_null(evaluations_in(folder) / (step.dump() + ".json"));
}

Json read_results(const fs::path& folder) {
  Json results = read_json_or_null(folder / "result.json");
  if (!results.is_object()) return nullptr;
  if (const Json step = exported_step(results); !step.is_null()) results["exportedStep"] = step;
  const Json evaluation = evaluation_of(folder, results);
  if (bool_or(evaluation, "final", false)) take_evaluation(evaluation, results);
  name_files(folder, results);
  return results;
}

Json read_final_evaluation(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator at(evaluations_in(folder), error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    const fs::file_time_type written = at->last_write_time(gone);
    if (!gone) files.emplace_back(written, at->path());
  }
  std::ranges::sort(files, std::greater());
  for (const auto& [written, file] : files) {
    const Json evaluation = read_json_or_null(file);
    if (!bool_or(evaluation, "final", false)) continue;
    Json results = {{"exportedStep", member(evaluation, "step")}};
    take_evaluation(evaluation, results);
    name_files(folder, results);
    return results;
  }
  return nullptr;
}

}  // namespace muster
