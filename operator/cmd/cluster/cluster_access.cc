#include "operator/cmd/cluster/cluster_access.h"

#include <fmt/format.h>
#include <prometheus/registry.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/http/config.h"
#include "operator/kube/http/credentials.h"
#include "operator/kube/http/http_transport.h"
#include "operator/kube/pods/names.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

namespace {

// The API server lists conflicts and causes on lines of their own.
std::string one_line(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) text.replace(at, 1, " ");
  return text;
}

}  // namespace

Json ClusterAccess::job(const std::string& name) const {
  std::optional<Json> object = client_.get(kube::training_jobs(), {name_space_, name});
  if (!object) throw_no_such_job(name);
  return std::move(*object);
}

void ClusterAccess::throw_no_such_job(const std::string& name) const {
  throw Invalid(fmt::format(
      "expected a TrainingJob \"{}\" in the namespace {} of {}, found none (`muster list -A` shows "
      "those there are)",
      name, name_space_, server_));
}

std::vector<kube::Pod> ClusterAccess::pods_of(const api::TrainingJob& job) const {
  kube::ListOptions options;
  options.label_selector = kube::label_selector(job);
  std::vector<kube::Pod> pods;
  for (const Json& item : client_.list(kube::pods(), job.name_space, options)) {
    kube::Pod pod = kube::decode_object<kube::Pod>(item.dump());
    if (pod.meta.label(kube::kJobUidLabel) == job.uid) pods.push_back(std::move(pod));
  }
  return pods;
}

std::string ClusterAccess::explain(const kube::ApiStatus& status, const std::string& what) const {
  if (status.code == 0) {
    return one_line(fmt::format("{}: expected an answer of the API server, found none: {}", server_,
                                status.message));
  }
  if (status.code == 401) {
    return fmt::format(
        "{}: expected credentials that the API server takes, found that it refuses those of the "
        "kubeconfig (401): {}",
        server_, one_line(status.message));
  }
  if (status.code == 403) {
    return fmt::format("{}: expected to be allowed this, found 403: {}", server_,
                       one_line(status.message));
  }
  if (status.code == 404 && !status.not_found()) {
    return fmt::format(
        "{}: expected an API server that knows TrainingJobs (muster.dev/v1alpha1), found one that "
        "does not: is the operator's CRD installed? (`muster crd | kubectl apply --server-side -f "
        "-`)",
        server_);
  }
  return server_ + ": " + one_line(what);
}

bool may_pass(const kube::ApiStatus& status) {
  return status.code == 0 || status.code == 408 || status.code == 429 || status.code >= 500;
}

int with_cluster(const ClusterFlags& flags,
                 const std::function<int(const ClusterAccess&)>& command) {
  kube::initialize_transport();
  const kube::Config config = kube::find_config(flags.kubeconfig, flags.context);
  kube::Credentials credentials(config);
  prometheus::Registry registry;
  kube::HttpTransport transport(credentials, registry, {});
  const ClusterAccess cluster(transport, config.server,
                              flags.name_space.empty() ? config.name_space : flags.name_space);
  try {
    return command(cluster);
  } catch (const kube::ApiUnavailable& error) {
    throw Unavailable(cluster.explain(error.status(), error.what()));
  } catch (const kube::ApiInvalid& error) {
    throw Invalid(cluster.explain(error.status(), error.what()));
  }
}

api::TrainingJob to_job(const Json& object) {
  try {
    return api::to_training_job(object);
  } catch (const std::exception& error) {
    const Json metadata = object.value("metadata", Json::object());
    throw Invalid(
        fmt::format("TrainingJob {}: expected the fields of muster.dev/v1alpha1 that this version "
                    "of muster knows, "
                    "found: {}",
                    metadata.value("name", "?"), one_line(error.what())));
  }
}

std::string object_name(const std::string& job) {
  return object_name(kube::training_jobs(), job);
}

std::string object_name(const kube::Resource& resource, const std::string& name) {
  std::string kind = resource.kind;
  for (char& letter : kind) letter = static_cast<char>(std::tolower(letter));
  return kind + (resource.group.empty() ? "" : "." + resource.group) + "/" + name;
}

bool is_local_job(const std::string& argument) {
  if (argument.empty()) throw Invalid("expected a job's directory or name, found \"\"", kUsage);
  const bool path = argument.find('/') != std::string::npos || argument == "." || argument == "..";
  return path || is_there(local::JobDirectory(argument).state());
}

}  // namespace muster::cmd
