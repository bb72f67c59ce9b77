#include "operator/api/pod_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/system/file.h"

namespace muster::api {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> notes_of(const std::string& pod_template) {
  return template_notes(Document::parse(
      "spec:\n  replicaSpecs:\n    worker:\n      template:\n        " + pod_template, "j"));
}

TEST(PodTemplate, NamesWhatKubernetesDoesNotKnow) {
  const struct {
    const char* pod_template;
    const char* note;  // nullptr: none
  } cases[] = {
      {"{}", nullptr},
      {"~", nullptr},
      {"{metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b, resources: "
       "{limits: {cpu: 0.5, memory: 1Gi, nvidia.com/gpu: 1}}}]}}",
       nullptr},
      {"{spec: {nodeSelector: ~, containers: [{name: a, ports: ~, livenessProbe: {httpGet: "
       "{port: web}}, readinessProbe: {httpGet: {port: 80}}}]}}",
       nullptr},
      {"{spec: {restartPolicyy: Never}}",
       "j:5: spec.replicaSpecs.worker.template.spec.restartPolicyy: Kubernetes 1.34 knows no such "
       "field; did you mean restartPolicy?"},
      {"{spec: {containers: [{name: a, ports: [{containerPort: 222222}]}]}}",
       "ports[0].containerPort: Kubernetes 1.34 expects an integer from 1 to 65535, found 222222"},
      {"{spec: {containers: [{name: a, resources: lots}]}}",
       "resources: Kubernetes 1.34 expects an object, found \"lots\""},
      {"{spec: {containers: [{name: a, resources: {limit: {cpu: 1}}}]}}", "did you mean limits?"},
      {"{spec: {volumes: [{persistentVolumeClaim: {claimName: c}}]}}",
       "volumes[0].name: Kubernetes 1.34 expects a string, found nothing"},
      {"{spec: {tolerations: {key: a}}}", "tolerations: Kubernetes 1.34 expects a list"},
      {"{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
       "{nodeSelectorTerms: [{matchExpression: []}]}}}}}",
       "did you mean matchExpressions?"},
  };
  for (const auto& item : cases) {
    if (item.note == nullptr)
      EXPECT_THAT(notes_of(item.pod_template), IsEmpty()) << item.pod_template;
    else
      EXPECT_THAT(notes_of(item.pod_template), ElementsAre(HasSubstr(item.note)))
          << item.pod_template;
  }
}

TEST(PodTemplate, IsNoTroubleWithoutTemplates) {
  for (const char* text : {"{}", "{spec: {replicaSpecs: 1}}", "{spec: {replicaSpecs: {ps: {}}}}",
                           "{spec: {replicaSpecs: {ps: 5}}}"})
    EXPECT_THAT(template_notes(Document::parse(text, "j")), IsEmpty()) << text;
}

// Where this fails, run tests/python/make_pod_template.py.
TEST(PodTemplate, IsOfTheKubernetesThatTestsRunOn) {
  const std::string notes = notes_of("{spec: {x: 1}}").at(0);
  const size_t begin = notes.find("Kubernetes ") + 11;
  const std::string release = notes.substr(begin, notes.find(' ', begin) - begin);
  EXPECT_THAT(read_file(MUSTER_SOURCE_DIR "/deploy/cluster/tools/kubernetes/go.mod"),
              HasSubstr("k8s.io/kubernetes v" + release + "."));
}

TEST(PodTemplate, KnowsTheFieldsOfAContainer) {
  EXPECT_THAT(container_fields(), Contains("volumeMounts"));
}

}  // namespace
}  // namespace muster::api
