#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "common/documents/json.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "operator/api/notes.h"
#include "operator/api/rules.h"
#include "operator/api/status.h"
#include "operator/api/validate.h"
#include "operator/cmd/cluster/cluster_commands.h"
#include "operator/cmd/job/manifests.h"
#include "trainer/spec/changes.h"

namespace muster::cmd {

namespace {

void drop_nulls(Json& value) {
  if (value.is_object()) {
    for (auto at = value.begin(); at != value.end();) {
      at = at->is_null() ? value.erase(at) : std::next(at);
    }
  }
  if (value.is_structured()) {
    for (Json& inner : value) drop_nulls(inner);
  }
}

// A server-side apply compares a list as one value, and the API server stores lists with the
// defaults of their entries and without nulls. So lists are sent in the same form: otherwise an
// unchanged manifest would conflict with the result of `kubectl apply`.
void complete_lists(Json& written, const Json& with_defaults) {
  if (written.is_array() && with_defaults.is_array()) {
    written = with_defaults;
    drop_nulls(written);
  } else if (written.is_object()) {
    for (auto& [name, value] : written.items()) {
      if (name != "template") complete_lists(value, member(with_defaults, name));
    }
  }
}

// Returns the job as the user wrote it. Defaults are left to the server, except within lists.
Json checked_job(Document object, const std::vector<std::string>& sets) {
  Document document = job_manifest(std::move(object), sets);
  Json manifest = document.value();
  require_no_problems(api::validate_for_cluster(document), kBadInput);
  for (const std::string& note : api::job_notes(document)) print(stderr, "note: {}\n", note);
  if (api::loses_files(api::to_training_job(document.value())))
    print(
        stderr,
        "note: {}: spec.storage.volume: none that outlives a pod: the job keeps no checkpoint and "
        "no model\n",
        document.source());
  complete_lists(manifest["spec"], member(document.value(), "spec"));
  return manifest;
}

}  // namespace

std::vector<Json> checked_manifests(const SubmitOptions& options) {
  require_one_standard_input(options.files);
  std::vector<Json> manifests;
  std::string problems;
  const auto check = [&](const std::function<void()>& work) {
    try {
      work();
    } catch (const Invalid& error) {
      if (error.exit_code() == kUsage) throw;
      problems += (problems.empty() ? "" : "\n") + std::string(error.what());
    }
  };
  for (const std::filesystem::path& file : options.files) {
    std::vector<ManifestObject> objects;
    check([&] {
      objects = read_manifests(file);
      require_no_problems(repeated_jobs(objects), kBadInput);
    });
    for (ManifestObject& object : objects)
      check([&] {
        manifests.push_back(object.is_job ? checked_job(std::move(object.document), options.sets)
                                          : object.document.value());
      });
  }
  if (!problems.empty()) throw Invalid(problems, kBadInput);
  return manifests;
}

namespace {

// Returns the manifest's own namespace, which must not differ from the namespace that the user
// asked for, or else the cluster's.
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

// Whether the API server has refused a change that is allowed only while the job is suspended.
bool needs_suspension(const kube::ApiStatus& status) {
  return std::ranges::any_of(member(status.details, "causes"), [](const Json& cause) {
    const std::string message = string_or(cause, "message", "");
    return std::ranges::any_of(api::rules(), [&](const api::Rule& rule) {
      const bool of_running_job = rule.found == nullptr && rule.path.empty();
      return of_running_job && message.find(rule.expected) != std::string::npos;
    });
  });
}

// Returns the differences between the present job and `manifest` that are allowed only while the
// job is suspended: "spec.training.batchSize (was 32, is 64)".
std::string refused_changes(const Json& before, const Json& manifest) {
  constexpr size_t kMost = 5;
  Document document = Document::parse("{}", "");
  document.value() = manifest;
  api::validate(document);  // for its defaults
  std::vector<spec::Change> found;
  for (const char* part : {"training", "storage", "elastic", "replicaSpecs"}) {
    const Json& was = member(member(before, "spec"), part);
    const Json& is = member(member(document.value(), "spec"), part);
    for (spec::Change& change : spec::changes({{part, was}}, {{part, is}})) {
      change.path = "spec." + change.path;
      found.push_back(std::move(change));
    }
  }
  return found.empty() ? "spec" : spec::list_changes(found, kMost);
}

bool is_job(const Json& manifest) {
  return string_or(manifest, "apiVersion", "") == kube::training_jobs().api_version();
}

Json apply(const ClusterAccess& cluster, const kube::Resource& resource,
           const kube::ObjectName& name, const Json& manifest, const std::optional<Json>& before,
           bool force) {
  kube::WriteOptions options;
  options.field_manager = "muster";
  options.strict = true;
  options.force = force;
  try {
    return cluster.client()
        .patch(resource, name, kube::PatchKind::apply, manifest, {}, options)
        .json();
  } catch (const kube::ApiUnavailable& error) {
    if (!error.status().conflict()) throw;
    throw Invalid(cluster.explain(error.status(), error.what()) +
                  "; --force-conflicts takes these fields from it");
  } catch (const kube::ApiInvalid& error) {
    if (!is_job(manifest) || !before || !needs_suspension(error.status())) throw;
    if (api::to_job_status(member(*before, "status")).is_true("Finished"))
      throw Invalid(
          fmt::format("{0}: expected nothing but more epochs or steps for a job that has "
                      "succeeded, and nothing for one that has failed; found one of {1}",
                      name.name, refused_changes(*before, manifest)));
    throw Invalid(fmt::format(
        "{0}: expected no change of what decides the training while the job runs, found one of "
        "{1}; `muster suspend {0} -n {2}`, and when `muster status {0} -n {2}` says Suspended "
        "submit "
        "again, then `muster resume {0} -n {2}`",
        name.name, refused_changes(*before, manifest), name.name_space));
  }
}

void tell(const std::string& title, const std::optional<Json>& before, const Json& after) {
  const char* what = !before                                    ? "created"
                     : version_of(*before) == version_of(after) ? "unchanged"
                                                                : "configured";
  print(stdout, "{} {}\n", title, what);
  std::fflush(stdout);
}

// Applies an object, and prints "created", "configured" or "unchanged".
void submit(const ClusterAccess& cluster, Json manifest, const kube::ObjectName& name, bool force) {
  const std::string kind = string_or(manifest, "kind", "");
  const auto known = is_job(manifest)
                         ? kube::Client::Kind{kube::training_jobs(), true}
                         : cluster.client().find_kind(string_or(manifest, "apiVersion", ""), kind);
  if (!known)
    throw Invalid(fmt::format("{} {}: expected a kind that the cluster has, found {} of {}", kind,
                              name.name, kind, string_or(manifest, "apiVersion", "")));
  kube::ObjectName object = name;
  if (!known->namespaced) object.name_space.clear();
  if (known->namespaced) manifest["metadata"]["namespace"] = object.name_space;
  const std::optional<Json> before = cluster.client().get(known->resource, object);
  tell(object_name(known->resource, object.name), before,
       apply(cluster, known->resource, object, manifest, before, force));
}

}  // namespace

int submit_jobs(const ClusterAccess& cluster, const std::vector<Json>& manifests,
                const std::string& name_space, const SubmitOptions& options) {
  std::vector<kube::ObjectName> names, jobs;
  for (const Json& manifest : manifests) {
    names.push_back({name_space_of(manifest, cluster, name_space),
                     string_or(member(manifest, "metadata"), "name", "")});
    if (names.back().name.empty())
      throw Invalid(string_or(manifest, "kind", "object") +
                    ": metadata.name: expected a name, found none");
    if (is_job(manifest)) jobs.push_back(names.back());
  }
  for (size_t i = 0; i < names.size(); ++i) submit(cluster, manifests[i], names[i], options.force);
  return options.wait ? wait_until_finished(cluster, jobs, options.waiting, stdout) : kSuccess;
}

}  // namespace muster::cmd
