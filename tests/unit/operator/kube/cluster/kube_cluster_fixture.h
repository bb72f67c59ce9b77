#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "common/documents/json.h"
#include "tests/unit/operator/kube/cluster/kube_world.h"
#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::kube {

inline bool is_tracked(const Json& pod) {
  return !member(pod["metadata"], "finalizers").empty();
}

inline Json training() {
  return Json::parse(R"({
      "training": {"model": {"name": "mnist-mlp"}, "epochs": 1, "data": {
          "train": {"syntheticClasses": {"samples": 60, "classes": 10, "shape": [784]}},
          "test": {"syntheticClasses": {"samples": 60, "classes": 10, "shape": [784]}}}},
      "storage": {"volume": {"hostPath": {"path": "/jobs"}}}})");
}

class KubeClusterTest : public testing::Test {
 protected:
  void start() {
    world_.submit();
    world_.settle();
    world_.run_all();
    world_.run_for(std::chrono::seconds(5));
  }
  // Ends the evaluator, and whoever is asked to leave, until nothing happens any more.
  void end_evaluator_and_leavers() {
    server().end_pod(world_.pod("evaluator-0"), 0);
    for (int i = 0; i < 4; ++i) {
      world_.settle();
      server().end_leaving_pods();
    }
    world_.settle();
  }
  // The next request of this kind is refused in this way, `times` times.
  void refuse(Method method, const std::string& part, const Response& response, int times = 1) {
    world_.server.intercept = [=, left = times](const Request& request) mutable {
      const bool hit =
          left > 0 && request.method == method && request.path.find(part) != std::string::npos;
      if (hit) --left;
      return hit ? std::optional(response) : std::nullopt;
    };
  }
  // Every request of this kind is refused in this way, until server().intercept is taken away.
  void refuse_all(Method method, const std::string& part, const Response& response) {
    refuse(method, part, response, std::numeric_limits<int>::max());
  }
  void change_spec(const Json& change) {
    Json job = world_.job();
    job["spec"].merge_patch(change);
    job["metadata"]["generation"] = integer_or(job["metadata"], "generation", 1) + 1;
    server().put(job);
    world_.settle();
  }
  std::string message(const std::string& type) {
    const Json job = world_.job();
    for (const Json& condition : job["status"]["conditions"]) {
      if (condition["type"] == type) return condition["message"];
    }
    return "";
  }
  // As kubectl scale does.
  void scale(int workers) {
    change_spec({{"replicaSpecs", {{"worker", {{"replicas", workers}}}}}});
  }
  FakeApiServer& server() { return world_.server; }

  KubeWorld world_;
};

}  // namespace muster::kube
