#include "operator/cmd/job/job_source.h"

#include <unistd.h>

#include "common/environment.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/process.h"
#include "common/threads/cpu_budget.h"
#include "operator/api/notes.h"
#include "operator/api/validate.h"
#include "operator/cmd/job/manifests.h"
#include "operator/local/processes/surroundings.h"
#include "trainer/compute/cuda/gpus.h"
#include "trainer/data/sources/look.h"
#include "trainer/spec/open_classes.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainer = "muster-trainer";

bool starts_trainer(const api::TrainingJob& job) {
  return !job.training.is_null();
}

}  // namespace

spec::LookUp look_here(const fs::path& manifest) {
  return [folder = fs::absolute(manifest).parent_path()](const std::string&,
                                                         const spec::DataSource& source) {
    return data::look_at(spec::below(folder, source));
  };
}

JobSource load_job(const RunOptions& options) {
  std::vector<std::string> notes;
  Document document = load_manifest(options.manifest, options.sets, notes);
  const spec::LookUp here = look_here(options.manifest);
  require_no_problems(api::validate(document, here), kBadInput);
  if (Json* training = document.find("spec.training"); training != nullptr)
    spec::fill_in_classes(*training, here);
  api::TrainingJob job = api::to_training_job(document.value());
  if (job.managed_by != api::kManagedByMuster) {
    throw Invalid(document.locate("spec.managedBy") + ": spec.managedBy: expected " +
                  api::kManagedByMuster + ", found " + job.managed_by +
                  ": another program runs this job");
  }
  const fs::path directory =
      options.directory.empty() ? fs::path("runs") / job.name : options.directory;
  local::Setting setting{local::JobDirectory(directory),
                         fs::absolute(options.manifest).parent_path().lexically_normal(),
                         starts_trainer(job) ? find_trainer() : fs::path(),
                         local::inherited_environment(),
                         cpu_budget(),
                         local::gpus_here(),
                         nullptr,
                         std::nullopt};
  for (std::string& note : spec::training_notes(document, "spec.training", here))
    notes.push_back(std::move(note));
  for (std::string& note : api::job_notes(document)) notes.push_back(std::move(note));
  JobSource source{std::move(job), std::move(document), std::move(setting), std::move(notes)};
  count_devices(source);
  return source;
}

void count_devices(JobSource& source) {
  const bool gpus = compute::cuda::kInThisBuild;
  api::set_devices(source.job, gpus ? local::devices_of_each(source.job, source.setting) : 1);
}

fs::path find_trainer() {
  if (const std::string named = environment_variable("MUSTER_TRAINER"); !named.empty())
    return fs::absolute(named);
  const fs::path beside = own_program().parent_path() / kTrainer;
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  return find_executable(kTrainer, environment_variable("PATH"), fs::current_path()).value_or("");
}

fs::path require_trainer() {
  fs::path trainer = find_trainer();
  if (::access(trainer.c_str(), X_OK) == 0) return trainer;
  throw Invalid(
      trainer.empty()
          ? "expected muster-trainer beside " + own_program().parent_path().string() +
                "/muster, on PATH or named by MUSTER_TRAINER; found none"
          : "expected an executable muster-trainer, found " + trainer.string() + ", which is not",
      kBadConfig);
}

bool has_role(const api::TrainingJob& job, api::Role role) {
  const auto spec = job.replicas.find(role);
  return spec != job.replicas.end() && spec->second.replicas > 0;
}

api::Role leader_of(const api::TrainingJob& job) {
  return has_role(job, api::Role::chief) ? api::Role::chief : api::Role::worker;
}

std::optional<fs::path> trainer_folder(const JobSource& source, api::Role role) {
  if (!has_role(source.job, role)) return std::nullopt;
  local::Addresses addresses;
  for (const std::string& name : local::port_names(source.job)) addresses.ports[name] = 0;
  const local::ReplicaLaunch replica =
      local::replica_launch(source.job, role, 0, 0, source.setting, addresses);
  return replica.runs_trainer ? std::optional(replica.launch.directory) : std::nullopt;
}

bool starts_replicas(const api::TrainingJob& job) {
  const api::JobStatus& status = job.status;
  const bool decided = status.is_true("Finished") || status.is_true("FailureTarget") ||
                       status.is_true("SuccessCriteriaMet");
  return !job.suspend && !decided;
}

std::string shown(const fs::path& path) {
  std::error_code error;
  const bool at_root = fs::current_path(error) == "/";  // "/a/b" would only lose its slash
  const std::string relative = fs::relative(path, error).string();
  const std::string whole = path.string();
  return !error && !at_root && !relative.empty() && relative.size() < whole.size() ? relative
                                                                                   : whole;
}

}  // namespace muster::cmd
