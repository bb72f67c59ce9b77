#include "operator/kube/pods/merge.h"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

struct Case {
  const char* name;
  const char* defaults;
  const char* users;
  const char* merged;
};

const Case kCases[] = {
    {"nothing of the user's", R"({"a": 1})", R"({})", R"({"a": 1})"},
    {"objects field by field", R"({"securityContext": {"runAsUser": 1, "fsGroup": 2}})",
     R"({"securityContext": {"runAsUser": 0}})",
     R"({"securityContext": {"runAsUser": 0, "fsGroup": 2}})"},
    {"null takes a default away", R"({"securityContext": {"runAsUser": 1}, "b": 2})",
     R"({"securityContext": null})", R"({"b": 2})"},
    {"containers by name, then field by field",
     R"({"containers": [{"name": "trainer", "image": "ours", "tty": true}]})",
     R"({"containers": [{"name": "log"}, {"name": "trainer", "image": "theirs"}]})",
     R"({"containers": [{"name": "trainer", "image": "theirs", "tty": true}, {"name": "log"}]})"},
    {"variables by name, whole", R"({"env": [{"name": "A", "value": "1"}, {"name": "B"}]})",
     R"({"env": [{"name": "A", "valueFrom": {}}, {"name": "C"}]})",
     R"({"env": [{"name": "A", "valueFrom": {}}, {"name": "B"}, {"name": "C"}]})"},
    {"a volume of another kind", R"({"volumes": [{"name": "v", "emptyDir": {}}]})",
     R"({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]})",
     R"({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]})"},
    {"mounts by path", R"({"volumeMounts": [{"name": "v", "mountPath": "/a"}]})",
     R"({"volumeMounts": [{"name": "w", "mountPath": "/a"}, {"name": "w", "mountPath": "/b"}]})",
     R"({"volumeMounts": [{"name": "w", "mountPath": "/a"}, {"name": "w", "mountPath": "/b"}]})"},
    {"a probe of another kind", R"({"readinessProbe": {"httpGet": {}, "periodSeconds": 2}})",
     R"({"readinessProbe": {"exec": {}}})", R"({"readinessProbe": {"exec": {}}})"},
    {"other lists whole", R"({"args": ["a", "b"]})", R"({"args": ["c"]})", R"({"args": ["c"]})"},
    {"tolerations of other taints are joined", R"({"tolerations": [{"key": "a"}, {"key": "b"}]})",
     R"({"tolerations": [{"key": "gpu"}]})",
     R"({"tolerations": [{"key": "gpu"}, {"key": "a"}, {"key": "b"}]})"},
    {"a user's toleration of the same taint wins",
     R"({"tolerations": [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 30}]})",
     R"({"tolerations": [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}]})",
     R"({"tolerations": [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}]})"},
    {"of another effect it does not", R"({"tolerations": [{"key": "a", "effect": "NoExecute"}]})",
     R"({"tolerations": [{"key": "a", "effect": "NoSchedule"}]})",
     R"({"tolerations": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]})"},
    {"who tolerates everything wants no default",
     R"({"tolerations": [{"key": "a", "effect": "NoExecute"}]})",
     R"({"tolerations": [{"operator": "Exists"}]})",
     R"({"tolerations": [{"operator": "Exists"}]})"},
    {"what is of another kind is the user's", R"({"containers": []})", R"({"containers": 7})",
     R"({"containers": 7})"},
};

TEST(MergeTemplate, FollowsKubernetesPatchesOfPods) {
  for (const Case& test : kCases) {
    EXPECT_EQ(merge_template(Json::parse(test.defaults), Json::parse(test.users)),
              Json::parse(test.merged))
        << test.name;
  }
}

}  // namespace
}  // namespace muster::kube
