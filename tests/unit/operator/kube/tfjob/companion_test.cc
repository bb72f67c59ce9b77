#include "operator/kube/tfjob/companion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/api/validate.h"
#include "operator/convert/tfjob.h"

namespace muster::kube {
namespace {

using testing::HasSubstr;

Json tfjob(const std::string& policy = "{}") {
  Json job = Json::parse(R"({
    "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
    "metadata": {"name": "mnist", "namespace": "lab", "uid": "u1", "generation": 3,
      "resourceVersion": "77", "labels": {"team": "vision"}, "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": "{}", "mail": "me"}},
    "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, "restartPolicy": "OnFailure",
      "template": {"spec": {"containers": [{"name": "tensorflow", "image": "tf"}]}}}}},
    "status": {"conditions": []}})");
  job["spec"]["runPolicy"] = Json::parse(policy);
  return job;
}

TEST(Companion, BelongsToTheTfJobAndIsAValidTrainingJob) {
  const Json job = companion_of(tfjob());
  const Json& metadata = job["metadata"];
  EXPECT_EQ(metadata["name"], "mnist");
  EXPECT_EQ(metadata["namespace"], "lab");
  EXPECT_EQ(metadata["labels"], Json::parse(R"({"team": "vision"})"));
  EXPECT_EQ(metadata["annotations"],
            Json::parse(R"({"mail": "me", "muster.dev/tfjob-generation": "3"})"));
  EXPECT_EQ(metadata["ownerReferences"], Json::parse(R"([{"apiVersion": "kubeflow.org/v1",
      "kind": "TFJob", "name": "mnist", "uid": "u1", "controller": true}])"));
  EXPECT_FALSE(job.contains("status"));
  EXPECT_EQ(job["spec"]["suspend"], false);
  const api::TrainingJob read = api::to_training_job(job);
  EXPECT_EQ(read.tfjob.name, "mnist");
  EXPECT_EQ(read.tfjob.uid, "u1");
  Document document = Document::of(job, "companion");
  api::validate(document);
}

// Otherwise the TFJob would stay, without what has run it.
TEST(Companion, LeavesTheTimeToLiveToTheTfJob) {
  const Json job = companion_of(tfjob(R"({"ttlSecondsAfterFinished": 60, "backoffLimit": 2})"));
  EXPECT_EQ(job["spec"]["runPolicy"]["backoffLimit"], 2);
  EXPECT_FALSE(job["spec"]["runPolicy"].contains("ttlSecondsAfterFinished"));
}

TEST(Companion, HasAShorterNameOfItsOwnForALongOne) {
  const std::string longest(40, 'a');
  EXPECT_EQ(convert::job_name_of_tfjob(longest), longest);
  const std::string one = convert::job_name_of_tfjob(longest + "b"),
                    other = convert::job_name_of_tfjob(longest + "c");
  EXPECT_EQ(one.size(), 40u);
  EXPECT_NE(one, other);
  EXPECT_EQ(one, convert::job_name_of_tfjob(longest + "b"));
}

void expect_valid(const Json& job) {
  Document document = Document::of(job, "companion");
  EXPECT_TRUE(api::validate(document).empty());
}

// Muster refuses these in a TrainingJob; v1 runs them.
TEST(Companion, OfATfJobThatV1RunsIsValid) {
  Json job = tfjob(R"({"backoffLimit": 2147483647,
      "schedulingPolicy": {"minAvailable": 99, "queue": "", "priorityClass": "high"}})");
  Json& container = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0];
  container["env"] = Json::parse(R"([{"name": "TF_CONFIG", "value": "{}"},
      {"name": "MUSTER_ROLE", "value": "me"}, {"name": "LEVEL", "value": "3"}])");
  const Json made = companion_of(job);
  expect_valid(made);
  const Json& spec = made["spec"];
  EXPECT_EQ(spec["replicaSpecs"]["worker"]["template"]["spec"]["containers"][0]["env"],
            Json::parse(R"([{"name": "LEVEL", "value": "3"}])"));
  EXPECT_EQ(spec["runPolicy"]["backoffLimit"], 100'000);
  EXPECT_FALSE(spec.contains("schedulingPolicy"));
}

// The training-operator has --gang-scheduler-name for this.
TEST(Companion, IsPlacedByTheGangSchedulerOfTheOperator) {
  const Json without = companion_of(tfjob(), "volcano");
  EXPECT_EQ(without["spec"]["schedulingPolicy"], Json::parse(R"({"gang": "volcano"})"));
  const Json with = companion_of(
      tfjob(R"({"schedulingPolicy": {"minAvailable": 1, "queue": "", "priorityClass": "high"}})"),
      "volcano");
  EXPECT_EQ(with["spec"]["schedulingPolicy"],
            Json::parse(R"({"minAvailable": 1, "priorityClass": "high", "gang": "volcano"})"));
  expect_valid(with);
}

TEST(Companion, OfAnInvalidTfJobNamesWhatIsWrong) {
  Json job = tfjob();
  job["spec"]["tfReplicaSpecs"]["Boss"] = job["spec"]["tfReplicaSpecs"]["Worker"];
  try {
    companion_of(job);
    ADD_FAILURE() << "no error";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("spec.tfReplicaSpecs.Boss: expected PS, Chief, Master"));
  }
}

TEST(Companion, IsMadeForThoseThatAreTaken) {
  const struct {
    const char* policy;
    bool marked, all;
  } cases[] = {
      {"{}", false, true},
      {R"({"managedBy": "kubeflow.org/training-operator"})", false, true},
      {R"({"managedBy": "muster.dev/operator"})", true, true},
      {R"({"managedBy": "kueue.x-k8s.io/multikueue"})", false, false},
  };
  for (const auto& [policy, marked, all] : cases) {
    EXPECT_EQ(is_taken(tfjob(policy), TakenTfJobs::marked), marked) << policy;
    EXPECT_EQ(is_taken(tfjob(policy), TakenTfJobs::all), all) << policy;
  }
}

}  // namespace
}  // namespace muster::kube
