#include <algorithm>
#include <functional>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "operator/api/notes.h"
#include "operator/api/validate.h"
#include "operator/cmd/job/initial_weights.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/job/manifests.h"
#include "operator/cmd/local/commands.h"
#include "operator/local/yaml_text.h"
#include "trainer/checkpoint/start/take_weights.h"
#include "trainer/data/sources/look.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

Json problem_json(const Problem& problem) {
  return {{"path", problem.shown_path()}, {"where", problem.where}, {"expected", problem.expected},
          {"found", problem.found},       {"hint", problem.hint},   {"text", problem.text()}};
}

// Adds notes on the weights that the model begins with. The file of initializeFrom need not exist
// on this machine, for example if the job will run on a cluster. Throws Invalid if the file exists
// here and cannot be used.
void check_weights(const Document& document, const fs::path& folder, const spec::LookUp& here,
                   std::vector<std::string>& notes) {
  const std::string path = "spec.training.initializeFrom";
  const Json* from = document.find(path);
  if (from != nullptr && from->is_string() &&
      !checkpoint::is_there(folder / from->get<std::string>())) {
    notes.push_back(document.locate(path) + ": " + path + ": " + from->get<std::string>() +
                    " is not here, so that what it holds is not checked");
    return;
  }
  const std::string note = look_at_initial_weights(document, folder, here);
  if (!note.empty()) notes.push_back(note);
}

// Returns the manifest's problems; `notes` gets a line for each remark that is not a problem.
std::vector<Problem> check_document(Document& document, const std::filesystem::path& file,
                                    std::vector<std::string>& notes) {
  const spec::LookUp here = look_here(file);
  const auto look = [&](const std::string& part, const spec::DataSource& source) {
    std::optional<spec::DataFacts> facts = here(part, source);
    if (!facts) {
      const std::string path = "spec.training.data." + part + "." + spec::words_of(source).name;
      const auto files =
          data::unreadable_files(spec::below(fs::absolute(file).parent_path(), source));
      notes.push_back(document.locate(path) + ": " + path + ": its files cannot be read here" +
                      (files.empty() ? "" : " (" + files.front().why + ")") +
                      ", so that what they hold is not checked; `muster run` needs them");
    }
    return facts;
  };
  std::vector<Problem> problems = api::validate(document, look);
  if (!problems.empty()) return problems;
  for (std::string& note : spec::training_notes(document, "spec.training", here)) {
    notes.push_back(std::move(note));
  }
  for (std::string& note : api::job_notes(document)) notes.push_back(std::move(note));
  if (std::string note = spec::note_of_memory(document, "spec.training", here); !note.empty())
    notes.push_back(std::move(note));
  check_weights(document, fs::absolute(file).parent_path(), here, notes);
  return problems;
}

Json check_file(const std::filesystem::path& file, const std::vector<std::string>& sets) {
  Json problems = Json::array();
  std::vector<std::string> notes;
  const auto fail = [&](const std::string& where, const std::string& expected,
                        const std::string& found, const char* text) {
    Json problem = problem_json({"", where, expected, found, ""});
    problem["text"] = text;
    problems.push_back(std::move(problem));
  };
  const auto check = [&](const std::function<void()>& work) {
    try {
      work();
    } catch (const Malformed& error) {
      fail(error.where(), error.expected(), error.found(), error.what());
    } catch (const Invalid& error) {
      if (error.exit_code() == kUsage) throw;
      fail(source_name(file), "", "", error.what());
    }
  };
  std::vector<ManifestObject> objects;
  check([&] { objects = read_manifests(file); });
  const std::vector<Problem> repeated = repeated_jobs(objects);
  for (const Problem& problem : repeated) problems.push_back(problem_json(problem));
  Json jobs = Json::array();
  for (ManifestObject& object : objects) {
    if (!object.is_job) {
      notes.push_back(note_of_other(object.document, "is no job, and is not checked here"));
      continue;
    }
    const size_t before = problems.size();
    const std::string job = object.document.locate("kind") + ": " + title(object.document);
    check([&] {
      Document document = job_manifest(std::move(object.document), sets);
      for (const Problem& problem : check_document(document, file, notes))
        problems.push_back(problem_json(problem));
    });
    jobs.push_back({{"job", job}, {"valid", repeated.empty() && problems.size() == before}});
  }
  const bool has_job = objects.empty() || std::ranges::any_of(objects, [](const auto& object) {
                         return object.is_job;
                       });
  if (!has_job)
    fail(source_name(file), "a job", "none",
         (source_name(file) + ": expected a job, found none").c_str());
  return {{"file", source_name(file)},
          {"valid", problems.empty()},
          {"jobs", std::move(jobs)},
          {"problems", std::move(problems)},
          {"notes", notes}};
}

Json to_json(const local::Variables& variables) {
  Json value = Json::object();
  for (const auto& [name, text] : variables) value[name] = text;
  return value;
}

Json render_replica(const JobSource& source, api::Role role, int index,
                    const local::Addresses& addresses) {
  const api::TrainingJob& job = source.job;
  const local::ReplicaLaunch replica =
      local::replica_launch(job, role, index, 0, source.setting, addresses);
  const local::Variables ours =
      local::replica_variables(job, role, index, 0, source.setting, addresses);
  Json value;
  value["name"] = local::replica_name(job, role, index);
  value["command"] = replica.launch.command;
  value["directory"] = replica.launch.directory.string();
  value["environment"] =
      to_json(local::container_command(job.replicas.at(role).pod_template, ours).variables);
  const Json& text = value["environment"].value("TF_CONFIG", Json(nullptr));
  value["tfConfig"] = text.is_string() ? Json::parse(text.get<std::string>()) : Json(nullptr);
  if (!job.training.is_null()) value["training.yaml"] = job.training;
  return value;
}

// Returns the addresses in the directory if the job has run there, else ports that only serve as
// examples.
local::Addresses addresses_to_show(const JobSource& source, bool& chosen) {
  constexpr int kFirst = 20000;
  local::Addresses addresses;
  if (const auto state = local::load_state(source.setting.directory)) addresses = state->addresses;
  chosen = true;
  int next = kFirst;
  for (const std::string& name : local::port_names(source.job)) {
    const auto [at, missing] = addresses.ports.try_emplace(name, next++);
    if (missing) chosen = false;
  }
  return addresses;
}

}  // namespace

namespace {

// Prints what check_file() has found. Of several jobs each is named.
void print_result(const Json& result) {
  const std::string file = result["file"];
  if (result["jobs"].size() > 1) {
    for (const Json& job : result["jobs"])
      if (job["valid"]) print(stdout, "{}: valid\n", job["job"].get<std::string>());
  } else if (result["valid"]) {
    print(stdout, "{}: valid\n", file);
  }
  for (const Json& problem : result["problems"])
    print(stdout, "{}\n", problem["text"].get<std::string>());
  for (const Json& note : result["notes"]) print(stdout, "note: {}\n", note.get<std::string>());
}

}  // namespace

int validate_manifests(const std::vector<std::filesystem::path>& files,
                       const std::vector<std::string>& sets, bool json) {
  require_one_standard_input(files);
  Json results = Json::array();
  bool valid = true;
  for (const std::filesystem::path& file : files) {
    results.push_back(check_file(file, sets));
    valid = valid && results.back()["valid"].get<bool>();
  }
  if (json) {
    print(stdout, "{}\n", results.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    for (const Json& result : results) print_result(result);
  }
  return valid ? kSuccess : kBadInput;
}

int render_job(const RunOptions& options) {
  JobSource source = load_job(options);
  if (source.job.uid.empty()) source.job.uid = "chosen-when-it-runs";
  if (source.setting.trainer.empty()) source.setting.trainer = "muster-trainer";
  bool chosen = false;
  const local::Addresses addresses = addresses_to_show(source, chosen);
  Json replicas = Json::array();
  for (const auto& [role, spec] : source.job.replicas) {
    for (int index = 0; index < spec.replicas; ++index) {
      replicas.push_back(render_replica(source, role, index, addresses));
    }
  }
  if (options.json) {
    print(stdout, "{}\n", replicas.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    if (!chosen) print(stdout, "# Ports and the job's uid are chosen when it runs.\n");
    print(stdout, "{}", local::to_yaml(replicas));
  }
  return kSuccess;
}

}  // namespace muster::cmd
