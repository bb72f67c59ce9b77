#pragma once

#include <fmt/format.h>

#include <string>

#include "operator/cmd/cluster/cluster_commands.h"
#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::cmd {

inline constexpr const char* kJob = "/apis/muster.dev/v1alpha1/namespaces/lab/trainingjobs/mnist";
inline constexpr const char* kPods = "/api/v1/namespaces/lab/pods";

inline Json job(const Json& status = Json::object()) {
  return {{"apiVersion", "muster.dev/v1alpha1"},
          {"kind", "TrainingJob"},
          {"metadata",
           {{"name", "mnist"}, {"namespace", "lab"}, {"uid", "u1"}, {"resourceVersion", "7"}}},
          {"spec",
           {{"replicaSpecs",
             {{"worker",
               {{"replicas", 1},
                {"template",
                 {{"spec", {{"containers", {{{"name", "tensorflow"}, {"image", "tf"}}}}}}}}}}}}}},
          {"status", status}};
}

inline Json condition(const char* type, const char* reason = "R", const char* message = "m") {
  return {{"type", type}, {"status", "True"}, {"reason", reason}, {"message", message}};
}

inline Json pod(const Json& state, int index = 0) {
  return {{"metadata",
           {{"name", fmt::format("mnist-worker-{}-abcde", index)},
            {"namespace", "lab"},
            {"uid", fmt::format("p{}", index + 1)},
            {"labels",
             {{"muster.dev/job", "mnist"},
              {"muster.dev/job-uid", "u1"},
              {"muster.dev/role", "worker"},
              {"muster.dev/index", std::to_string(index)},
              {"muster.dev/attempt", "0"},
              {"muster.dev/run", "0"},
              {"muster.dev/container", "tensorflow"}}}}},
          {"spec", {{"containers", {{{"name", "tensorflow"}}}}, {"restartPolicy", "Never"}}},
          {"status",
           {{"phase", "Running"},
            {"containerStatuses",
             {{{"name", "tensorflow"}, {"ready", true}, {"restartCount", 0}, {"state", state}}}}}}};
}

// The access to a cluster that answers as `transport` does.
inline ClusterAccess access(kube::FakeTransport& transport) {
  return {transport, "https://api:6443", "lab"};
}

inline kube::Response ok(const Json& body) {
  return kube::answer(200, body.dump());
}

}  // namespace muster::cmd
