#include "operator/convert/tfjob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/api/validate.h"

namespace muster::convert {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kJob = R"(
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: dist-mnist, namespace: lab, labels: {team: vision}}
spec:
  runPolicy: {cleanPodPolicy: Running, backoffLimit: 3}
  tfReplicaSpecs:
    PS:
      replicas: 2
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: dist-mnist:1.0}]}}
    Worker:
      replicas: 4
      restartPolicy: OnFailure
      template:
        spec:
          restartPolicy: Always
          containers:
          - {name: tensorflow, image: dist-mnist:1.0, command: [python3, mnist.py]}
)";

Document manifest(const std::vector<std::string>& sets = {}) {
  Document document = Document::parse(kJob, "tfjob.yaml");
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    document.set(set.substr(0, equals), set.substr(equals + 1));
  }
  return document;
}

// A valid TFJob always becomes a valid TrainingJob here: that is checked each time.
Converted converted_tfjob(const std::vector<std::string>& sets = {}) {
  Converted one = convert_tfjob(manifest(sets));
  Document job = Document::of(one.job, "job.yaml");
  for (const Problem& problem : api::validate(job)) ADD_FAILURE() << problem.text();
  return one;
}

std::string refusal(const std::vector<std::string>& sets) {
  try {
    convert_tfjob(manifest(sets));
  } catch (const Invalid& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConvertTfjob, TheSameProgramsRunInTheSameRoles) {
  const Converted one = converted_tfjob();
  EXPECT_EQ(one.job["metadata"], Json::parse(R"({"name": "dist-mnist", "namespace": "lab",
      "labels": {"team": "vision"}})"));
  const Json& roles = one.job["spec"]["replicaSpecs"];
  EXPECT_EQ(roles["ps"]["replicas"], 2);
  EXPECT_EQ(roles["worker"]["replicas"], 4);
  EXPECT_EQ(roles["worker"]["template"], Json::parse(R"({"spec": {"containers": [
      {"name": "tensorflow", "image": "dist-mnist:1.0", "command": ["python3", "mnist.py"]}]}})"))
      << "the pods' own restartPolicy never counted";
  EXPECT_THAT(one.not_carried, IsEmpty());
  EXPECT_THAT(one.to_set, IsEmpty());
}

TEST(ConvertTfjob, LimitsHaveTheDefaultsOfATfjob) {
  EXPECT_EQ(converted_tfjob().job["spec"]["runPolicy"],
            Json::parse(R"({"backoffLimit": 3, "cleanPodPolicy": "Running"})"));
  EXPECT_EQ(converted_tfjob({"spec.runPolicy=null"}).job["spec"]["runPolicy"],
            Json::parse(R"({"backoffLimit": 100000, "cleanPodPolicy": "None"})"))
      << "without a limit a TFJob restarts for ever";
  EXPECT_EQ(converted_tfjob({"spec.runPolicy.backoffLimit=2147483647"})
                .job["spec"]["runPolicy"]["backoffLimit"],
            100000);
  const Converted one =
      converted_tfjob({"spec.runPolicy={activeDeadlineSeconds: 60, "
                       "ttlSecondsAfterFinished: 0, suspend: true}",
                       "spec.tfReplicaSpecs.Worker.restartPolicy=Never"});
  EXPECT_EQ(one.job["spec"]["runPolicy"],
            Json::parse(R"({"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 0,
                            "cleanPodPolicy": "None"})"));
  EXPECT_EQ(one.job["spec"]["suspend"], true);
}

struct Restarts {
  const char* policy;
  const char* becomes;
  bool has_rule;
  bool is_told;
};

class RestartPolicies : public testing::TestWithParam<Restarts> {};

TEST_P(RestartPolicies, AreThoseOfATfjob) {
  const Restarts& expected = GetParam();
  const Converted one =
      converted_tfjob({std::string("spec.tfReplicaSpecs.Worker.restartPolicy=") + expected.policy});
  const Json& spec = one.job["spec"];
  EXPECT_EQ(spec["replicaSpecs"]["worker"]["restartPolicy"], expected.becomes);
  EXPECT_EQ(spec.contains("failurePolicy"), expected.has_rule);
  EXPECT_EQ(!one.not_carried.empty(), expected.is_told);
}

INSTANTIATE_TEST_SUITE_P(All, RestartPolicies,
                         testing::Values(Restarts{"Never", "Never", false, false},
                                         Restarts{"OnFailure", "OnFailure", false, false},
                                         Restarts{"ExitCode", "OnFailure", true, false},
                                         Restarts{"Always", "OnFailure", false, true},
                                         Restarts{"\"\"", "Never", false, false},
                                         Restarts{"null", "Never", false, false}),
                         [](const auto& info) { return std::to_string(info.index); });

TEST(ConvertTfjob, ExitCodeFailsTheJobBelow128OfThatTypeAlone) {
  const Converted one = converted_tfjob({"spec.tfReplicaSpecs.Worker.restartPolicy=ExitCode"});
  const Json& rules = one.job["spec"]["failurePolicy"]["rules"];
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0]["action"], "FailJob");
  EXPECT_EQ(rules[0]["roles"], Json::array({"worker"}));
  EXPECT_EQ(rules[0]["onExitCodes"].size(), 127U);
  EXPECT_EQ(rules[0]["onExitCodes"].front(), 1);
  EXPECT_EQ(rules[0]["onExitCodes"].back(), 127);
}

TEST(ConvertTfjob, SuccessIsDecidedAsByATfjob) {
  const auto decided_by = [](const Converted& one) {
    return string_or(member(one.job["spec"], "successPolicy"), "decidedBy", "the default");
  };
  EXPECT_EQ(decided_by(converted_tfjob()), "workerZero");
  EXPECT_EQ(decided_by(converted_tfjob({"spec.successPolicy=AllWorkers"})), "allWorkers");
  for (const std::string chief : {"Chief", "MASTER"}) {
    const Converted one = converted_tfjob(
        {"spec.successPolicy=AllWorkers", "spec.tfReplicaSpecs." + chief +
                                              "={template: {spec: {containers: [{name: tensorflow, "
                                              "image: a}]}}}"});
    EXPECT_EQ(decided_by(one), "the default") << "the chief decides";
    EXPECT_TRUE(one.job["spec"]["replicaSpecs"].contains(chief == "Chief" ? "chief" : "master"));
  }
}

TEST(ConvertTfjob, WhatATrainingJobDoesOtherwiseIsNamed) {
  const Converted one = converted_tfjob(
      {"spec.runPolicy.schedulingPolicy={minAvailable: 6, queue: q, priorityClass: high, "
       "scheduleTimeoutSeconds: 60, minResources: {cpu: 4}}",
       "spec.tfReplicaSpecs.evaluator={template: {spec: {containers: [{name: tensorflow, image: a, "
       "ports: [{name: tfjob-port, containerPort: 3333}]}]}}}"});
  EXPECT_EQ(one.job["spec"]["schedulingPolicy"],
            Json::parse(R"({"minAvailable": 6, "queue": "q", "priorityClass": "high",
                            "timeout": 60})"));
  EXPECT_THAT(one.to_set, ElementsAre(HasSubstr("spec.schedulingPolicy.gang: volcano or")));
  EXPECT_THAT(one.not_carried, Contains(HasSubstr("minResources: ")));
  EXPECT_THAT(one.not_carried, Contains(HasSubstr("evaluator: its failure fails a TFJob")));
  EXPECT_THAT(one.not_carried, Contains(HasSubstr("port tfjob-port: 3333; TF_CONFIG says port")));
}

TEST(ConvertTfjob, AnEmptyQueueIsNone) {
  const Converted one =
      converted_tfjob({R"(spec.runPolicy.schedulingPolicy={queue: "", priorityClass: ""})"});
  EXPECT_EQ(one.job["spec"]["schedulingPolicy"], Json::object());
}

TEST(ConvertTfjob, WhoeverManagesAJobStillDoes) {
  EXPECT_FALSE(converted_tfjob().job["spec"].contains("managedBy"));
  EXPECT_FALSE(converted_tfjob({"spec.runPolicy.managedBy=kubeflow.org/training-operator"})
                   .job["spec"]
                   .contains("managedBy"));
  EXPECT_EQ(converted_tfjob({"spec.runPolicy.managedBy=kueue.x-k8s.io/multikueue"})
                .job["spec"]["managedBy"],
            "kueue.x-k8s.io/multikueue");
}

struct RefusedTfJob {
  const char* set;
  const char* message;
};

class RefusedTfjobs : public testing::TestWithParam<RefusedTfJob> {};

TEST_P(RefusedTfjobs, NameTheFieldAndWhatIsExpected) {
  EXPECT_THAT(refusal({GetParam().set}), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedTfjobs,
    testing::Values(
        RefusedTfJob{"apiVersion=kubeflow.org/v1beta1",
                     "apiVersion: expected one of kubeflow.org/v1, found"},
        RefusedTfJob{"apiVersion=null", "apiVersion: expected one of kubeflow.org/v1, found null"},
        RefusedTfJob{"spec.runPolicy.backoffLimit=3000000000",
                     "backoffLimit: expected an integer from 0 to 2147483647"},
        RefusedTfJob{"kind=PyTorchJob", "kind: expected one of TFJob, found \"PyTorchJob\""},
        RefusedTfJob{"metadata=null", "metadata"}, RefusedTfJob{"metadata.name=7", "metadata.name"},
        RefusedTfJob{"spec.tfReplicaSpecs=null", "spec.tfReplicaSpecs"},
        RefusedTfJob{"spec.tfReplicaSpecs={}", "spec.tfReplicaSpecs"},
        RefusedTfJob{"spec.tfReplicaSpecs.Worker.replicas=-1", "tfReplicaSpecs.Worker.replicas"},
        RefusedTfJob{"spec.tfReplicaSpecs.Worker.replicas=two", "tfReplicaSpecs.Worker.replicas"},
        RefusedTfJob{"spec.tfReplicaSpecs.Worker.restartPolicy=Sometimes", "Worker.restartPolicy"},
        RefusedTfJob{"spec.tfReplicaSpecs.Worker.template=null", "Worker.template"},
        RefusedTfJob{"spec.tfReplicaSpecs.Worker.templat={}", "templat"},
        RefusedTfJob{"spec.tfReplicaSpecs.Launcher={template: {}}",
                     "expected PS, Chief, Master, Worker or Evaluator, found \"Launcher\""},
        RefusedTfJob{"spec.tfReplicaSpecs.WORKER={template: {}}", "expected each type once"},
        RefusedTfJob{"spec.runPolicy.cleanPodPolicy=Some", "runPolicy.cleanPodPolicy"},
        RefusedTfJob{"spec.runPolicy.backoffLimit=-1", "runPolicy.backoffLimit"},
        RefusedTfJob{"spec.runPolicy.activeDeadlineSeconds=soon", "activeDeadlineSeconds"},
        RefusedTfJob{"spec.runPolicy.ttlSecondsAfterFinished=-5", "ttlSecondsAfterFinished"},
        RefusedTfJob{"spec.runPolicy.suspend=perhaps", "runPolicy.suspend"},
        RefusedTfJob{"spec.runPolicy.schedulingPolicy.minAvailable=0", "minAvailable"},
        RefusedTfJob{"spec.successPolicy=SomeWorkers", "spec.successPolicy"},
        RefusedTfJob{"spec.enableDynamicWorker=3", "spec.enableDynamicWorker"},
        RefusedTfJob{"spec.cleanPodPolicy=All", "spec.cleanPodPolicy"}),
    [](const auto& info) { return std::to_string(info.index); });

// A problem of the TrainingJob names the place in the TFJob that it comes from.
TEST(ConvertTfjob, ProblemsLeadBackToTheManifest) {
  const Document original =
      manifest({"spec.tfReplicaSpecs.PS.template.spec.containers[0].image=''"});
  const Converted one = convert_tfjob(original);
  Document job = Document::of(one.job, original, one.renamed);
  std::vector<std::string> problems;
  for (const Problem& problem : api::validate(job)) problems.push_back(problem.text());
  EXPECT_THAT(problems,
              ElementsAre(HasSubstr(
                  "tfjob.yaml:11: spec.tfReplicaSpecs.PS.template.spec.containers[0]: expected")));
  EXPECT_EQ(job.path_in_text("spec.schedulingPolicy.timeout"),
            "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds");
  EXPECT_EQ(job.path_in_text("spec.runPolicy.backoffLimit"), "spec.runPolicy.backoffLimit");
}

TEST(ConvertTfjob, ChiefAndMasterAreOneType) {
  EXPECT_THAT(refusal({"spec.tfReplicaSpecs.Chief={template: {}}",
                       "spec.tfReplicaSpecs.Master={template: {}}"}),
              HasSubstr("expected a Chief or a Master"));
}

TEST(ConvertTfjob, ItsKindIsToldFromOthers) {
  EXPECT_TRUE(is_kubeflow_job(manifest()));
  EXPECT_TRUE(is_kubeflow_job(Document::parse("{kind: TFJob}", "other.yaml")));
  for (const char* other : {"{}", "7", "", "{apiVersion: muster.dev/v1alpha1}"})
    EXPECT_FALSE(is_kubeflow_job(Document::parse(other, "other.yaml"))) << other;
}

}  // namespace
}  // namespace muster::convert
