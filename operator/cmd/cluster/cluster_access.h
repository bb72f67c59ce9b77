#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/kube/api/client.h"
#include "operator/kube/api/objects.h"

namespace muster::cmd {

// What every command that asks a cluster takes.
struct ClusterFlags {
  std::filesystem::path kubeconfig;  // empty: as kube::find_config finds one
  std::string context;               // empty: the kubeconfig's current one
  std::string name_space;            // empty: the context's
  // Whether the user has named a cluster, or a part of one.
  bool given() const { return !kubeconfig.empty() || !context.empty() || !name_space.empty(); }
};

// One API server, and the namespace that names of jobs are of. Calls block, each with a deadline,
// and throw what kube::Client throws.
class ClusterAccess {
 public:
  // `server` is for messages. `transport` must outlive this.
  ClusterAccess(kube::Transport& transport, std::string server, std::string name_space)
      : transport_(transport),
        client_(transport),
        server_(std::move(server)),
        name_space_(std::move(name_space)) {}

  const kube::Client& client() const { return client_; }
  kube::Transport& transport() const { return transport_; }
  const std::string& name_space() const { return name_space_; }

  // The same server, of which another namespace is meant.
  ClusterAccess in(const std::string& name_space) const {
    return {transport_, server_, name_space};
  }

  // The TrainingJob as the server keeps it. Throws Invalid where there is none of this name.
  Json job(const std::string& name) const;
  [[noreturn]] void throw_no_such_job(const std::string& name) const;
  // Pods of a job as api::TrainingJob has it: of this UID, not of another of the same name.
  std::vector<kube::Pod> pods_of(const api::TrainingJob& job) const;

  // A refusal, or that no answer came, in one line for the user; `what` is the error's own text.
  std::string explain(const kube::ApiStatus& status, const std::string& what) const;

 private:
  kube::Transport& transport_;
  const kube::Client client_;
  const std::string server_;
  const std::string name_space_;
};

// No answer, or none that says anything of what was asked: the next one may be better.
bool may_pass(const kube::ApiStatus& status);

// Runs `command` on the cluster that `flags` name. Throws Invalid or Unavailable, in one line. Once
// in a process.
int with_cluster(const ClusterFlags& flags,
                 const std::function<int(const ClusterAccess&)>& command);

// An object of the cluster as C++ values, status too. Throws Invalid for one that this version
// cannot read.
api::TrainingJob to_job(const Json& object);

// "trainingjob.muster.dev/mnist", as kubectl names it.
std::string object_name(const std::string& job);

// Whether `argument` of status and logs is a job's directory on this machine: a path, with a slash,
// or a directory here that holds a job. Else it is the name of a job of the cluster.
bool is_local_job(const std::string& argument);

}  // namespace muster::cmd
