#include "operator/api/notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> notes_of(const std::string& training, const std::string& roles) {
  return job_notes(Document::parse(
      "spec:\n  training: {" + training + "}\n  replicaSpecs: {" + roles + "}", "j"));
}

TEST(JobNotes, NameAReplicaThatAsksForMoreGpusThanItUses) {
  const auto notes = [](const char* devices, const std::string& role, const char* resources) {
    return notes_of(
        "devices: " + std::string(devices),
        role + ": {template: {spec: {containers: [{name: a, resources: " + resources + "}]}}}");
  };
  EXPECT_THAT(notes("2", "master", "{requests: {nvidia.com/gpu: 4}}"),
              ElementsAre("j:2: spec.training.devices: master uses 2 of the 4 nvidia.com/gpu that "
                          "its template asks for; auto uses all"));
  EXPECT_THAT(notes("4", "worker", "{limits: {nvidia.com/gpu: 4}}"), IsEmpty());
  EXPECT_THAT(notes("auto", "worker", "{limits: {nvidia.com/gpu: 4}}"), IsEmpty());
  EXPECT_THAT(notes("1", "ps", "{limits: {nvidia.com/gpu: 4}}"), IsEmpty());
}

TEST(JobNotes, NameSettingsWithoutEffect) {
  EXPECT_THAT(notes_of("psDevice: cuda", "chief: {}"),
              ElementsAre("j:2: spec.training.psDevice: cuda has no effect: the job has no ps"));
  EXPECT_THAT(notes_of("psDevice: cuda", "ps: {}, chief: {}"), IsEmpty());
  EXPECT_THAT(notes_of("psDevice: cpu", "chief: {}"), IsEmpty());
  EXPECT_THAT(notes_of("synchronization: {nccl: always}", "ps: {}, chief: {}"),
              ElementsAre("j:2: spec.training.synchronization.nccl: always has no effect: the job "
                          "has parameter servers, which replicas do not reach by NCCL"));
  EXPECT_THAT(notes_of("synchronization: {nccl: always}", "chief: {}, worker: {}"), IsEmpty());
  EXPECT_THAT(notes_of("synchronization: {nccl: auto}", "ps: {}, chief: {}"), IsEmpty());
}

TEST(JobNotes, AreNoneWithoutTrainingOrReplicas) {
  for (const char* text :
       {"{}", "{spec: {replicaSpecs: {ps: {}}}}", "{spec: {training: {devices: 1}}}"})
    EXPECT_THAT(job_notes(Document::parse(text, "j")), IsEmpty()) << text;
}

}  // namespace
}  // namespace muster::api
