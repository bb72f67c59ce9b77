#pragma once

#include <string>

#include "operator/kube/api/codec.h"

namespace muster::kube {

// Metadata of a pod that was deleted and may live on for its grace period.
inline constexpr const char* kDeleted = R"({"deletionTimestamp": "2026-01-02T03:10:00Z"})";

// A pod of worker 1 of job mnist as an API server would send it, with `status` (and more of its
// metadata and spec) merged in; all are JSON texts.
inline Pod pod_with(const std::string& status, const std::string& metadata = "{}",
                    const std::string& spec = "{}") {
  Json pod = Json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "mnist-worker-1-x7k2p", "namespace": "lab", "uid": "pod-uid",
                 "resourceVersion": "100", "creationTimestamp": "2026-01-02T03:00:00Z",
                 "labels": {"muster.dev/job": "mnist", "muster.dev/role": "worker",
                            "muster.dev/index": "1", "muster.dev/attempt": "2",
                            "muster.dev/run": "3", "muster.dev/current": "true",
                            "muster.dev/container": "trainer"},
                 "finalizers": ["muster.dev/tracking"]},
    "spec": {"restartPolicy": "Never", "nodeName": "node-1",
             "containers": [{"name": "trainer"}, {"name": "log"}]}})");
  pod["metadata"].update(Json::parse(metadata));
  pod["spec"].update(Json::parse(spec));
  pod["status"] = Json::parse(status);
  return decode_object<Pod>(pod.dump());
}

}  // namespace muster::kube
