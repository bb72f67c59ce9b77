#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/kube/api/client.h"
#include "operator/kube/api/objects.h"

namespace muster::cmd {

// The options of every command that talks to a cluster.
struct ClusterFlags {
  std::filesystem::path kubeconfig;  // empty: the file that kube::find_config finds
  std::string context;               // empty: the kubeconfig's current context
  std::string name_space;            // empty: the context's namespace
  // Whether the user has given one of these options.
  bool given() const { return !kubeconfig.empty() || !context.empty() || !name_space.empty(); }
};

// One API server, and the namespace in which job names are looked up. Calls block, each with a
// deadline, and throw what kube::Client throws.
class ClusterAccess {
 public:
  // `server` is the name used in messages. `transport` must outlive this object.
  ClusterAccess(kube::Transport& transport, std::string server, std::string name_space)
      : transport_(transport),
        client_(transport),
        server_(std::move(server)),
        name_space_(std::move(name_space)) {}

  const kube::Client& client() const { return client_; }
  kube::Transport& transport() const { return transport_; }
  const std::string& name_space() const { return name_space_; }

  // Returns access to the same server with another namespace.
  ClusterAccess in(const std::string& name_space) const {
    return {transport_, server_, name_space};
  }

  // Returns the TrainingJob as the server keeps it. Throws Invalid if there is none of this name.
  Json job(const std::string& name) const;
  [[noreturn]] void throw_no_such_job(const std::string& name) const;
  // Returns the pods with this job's UID, without pods of another job of the same name.
  std::vector<kube::Pod> pods_of(const api::TrainingJob& job) const;

  // Explains in one line for the user a refusal or a missing answer; `what` is the error's own
  // text.
  std::string explain(const kube::ApiStatus& status, const std::string& what) const;

 private:
  kube::Transport& transport_;
  const kube::Client client_;
  const std::string server_;
  const std::string name_space_;
};

// Whether a later call may succeed: no answer came, or the answer says nothing about the request.
bool may_pass(const kube::ApiStatus& status);
// The longest time for which commands wait for an API server that does not answer.
inline constexpr std::chrono::minutes kPatience{5};

// Runs `command` on the cluster that `flags` name. Throws Invalid or Unavailable, in one line. Call
// it once per process.
int with_cluster(const ClusterFlags& flags,
                 const std::function<int(const ClusterAccess&)>& command);

// Converts an object of the cluster, with its status, to C++ values. Throws Invalid for an object
// that this version cannot read.
api::TrainingJob to_job(const Json& object);

// Returns the name that kubectl uses: "trainingjob.muster.dev/mnist".
std::string object_name(const std::string& job);
std::string object_name(const kube::Resource& resource, const std::string& name);

// Whether `argument` of status and logs is a job's directory on this machine: a path with a slash,
// or a directory here that holds a job. Otherwise it is the name of a job of the cluster.
bool is_local_job(const std::string& argument);

}  // namespace muster::cmd
