#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/json.h"
#include "common/output.h"
#include "operator/api/validate.h"
#include "operator/cmd/cluster_commands.h"
#include "operator/cmd/job_source.h"

namespace muster::cmd {

namespace {

// As the user wrote it: what the schema would fill in stays the server's.
Json checked_manifest(const std::filesystem::path& file, const std::vector<std::string>& sets) {
  Document document = load_manifest(file, sets);
  Json manifest = document.value();
  require_no_problems(api::validate_for_cluster(document), kBadInput);
  return manifest;
}

}  // namespace

std::vector<Json> checked_manifests(const SubmitOptions& options) {
  std::vector<Json> manifests;
  std::string problems;
  for (const std::filesystem::path& file : options.files) {
    try {
      manifests.push_back(checked_manifest(file, options.sets));
    } catch (const Invalid& error) {
      if (error.exit_code() == kUsage) throw;
      problems += (problems.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!problems.empty()) throw Invalid(problems, kBadInput);
  return manifests;
}

namespace {

// The manifest's own, which must not be another than the one asked for.
std::string name_space_of(const Json& manifest, const ClusterAccess& cluster,
                          const std::string& asked) {
  std::string own = string_or(member(manifest, "metadata"), "namespace", "");
  if (own.empty()) return cluster.name_space();
  if (!asked.empty() && own != asked) {
    throw Invalid(
        fmt::format("--namespace: expected {}, as metadata.namespace of {} says, found {}", own,
                    string_or(member(manifest, "metadata"), "name", ""), asked),
        kUsage);
  }
  return own;
}

std::string version_of(const Json& object) {
  return string_or(member(object, "metadata"), "resourceVersion", "");
}

Json apply(const ClusterAccess& cluster, const kube::ObjectName& name, const Json& manifest,
           bool force) {
  kube::WriteOptions options;
  options.field_manager = "muster";
  options.strict = true;
  options.force = force;
  try {
    return cluster.client()
        .patch(kube::training_jobs(), name, kube::PatchKind::apply, manifest, {}, options)
        .json();
  } catch (const kube::ApiUnavailable& error) {
    if (!error.status().conflict()) throw;
    throw Invalid(cluster.explain(error.status(), error.what()) +
                  "; --force-conflicts takes these fields from it");
  }
}

// "created", ...; the object's namespace goes where it is still missing.
void submit(const ClusterAccess& cluster, Json manifest, const std::string& name_space,
            bool force) {
  const std::string name = string_or(member(manifest, "metadata"), "name", "");
  manifest["metadata"]["namespace"] = name_space;
  const std::optional<Json> before =
      cluster.client().get(kube::training_jobs(), {name_space, name});
  const Json after = apply(cluster, {name_space, name}, manifest, force);
  const char* what = !before                                    ? "created"
                     : version_of(*before) == version_of(after) ? "unchanged"
                                                                : "configured";
  print(stdout, "{} {}\n", object_name(name), what);
  std::fflush(stdout);
}

}  // namespace

int submit_jobs(const ClusterAccess& cluster, const std::vector<Json>& manifests,
                const std::string& name_space, const SubmitOptions& options) {
  std::vector<kube::ObjectName> jobs;
  for (const Json& manifest : manifests) {
    jobs.push_back({name_space_of(manifest, cluster, name_space),
                    string_or(member(manifest, "metadata"), "name", "")});
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    submit(cluster, manifests[i], jobs[i].name_space, options.force);
  }
  return options.wait ? wait_until_finished(cluster, jobs, options.waiting, stdout) : kSuccess;
}

}  // namespace muster::cmd
