#include "operator/api/notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::api {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> notes_of(const std::string& training, const std::string& roles) {
  return job_notes(Document::parse(
      "spec:\n  training: {" + training + "}\n  replicaSpecs: {" + roles + "}", "j"));
}

TEST(JobNotes, NameAReplicaThatAsksForOtherThanTheGpusThatItUses) {
  const struct {
    const char* training;
    const char* role;
    const char* replica;
    const char* note;  // nullptr: none
  } cases[] = {
      {"devices: 2", "master", "requests: {nvidia.com/gpu: 4}",
       "uses 2 of the 4 nvidia.com/gpu that it asks for; spec.training.devices: auto uses all"},
      {"devices: 4", "worker", "limits: {nvidia.com/gpu: 4}", nullptr},
      {"devices: 4", "worker", "limits: {nvidia.com/gpu: 3}",
       "asks for 3 of the 4 nvidia.com/gpu that it computes on"},
      {"devices: 4", "worker", "limits: {cpu: 3}", nullptr},
      {"devices: 2", "chief", "limits: {nvidia.com/gpu: 100}",
       "uses 2 of the 100 nvidia.com/gpu that it asks for"},
      {"devices: auto", "chief", "limits: {nvidia.com/gpu: 100}",
       "uses 64 of the 100 nvidia.com/gpu that it asks for"},
      {"devices: auto", "worker", "limits: {nvidia.com/gpu: 4}", nullptr},
      {"devices: auto, device: cpu", "chief", "limits: {nvidia.com/gpu: 4}",
       "uses 0 of the 4 nvidia.com/gpu that it asks for"},
      {"devices: 4", "evaluator", "limits: {nvidia.com/gpu: 4}",
       "uses 1 of the 4 nvidia.com/gpu that it asks for"},
      {"devices: 4", "ps", "limits: {nvidia.com/gpu: 1}",
       "uses 0 of the 1 nvidia.com/gpu that it asks for"},
      {"devices: 1, psDevice: cuda", "ps", "limits: {nvidia.com/gpu: 1}", nullptr},
  };
  for (const auto& item : cases) {
    const std::string replica = "template: {spec: {containers: [{name: a, resources: {" +
                                std::string(item.replica) + "}}]}}";
    const std::string role = item.role;
    const auto notes = notes_of(item.training, role + ": {" + replica + "}");
    if (item.note == nullptr)
      EXPECT_THAT(notes, IsEmpty()) << item.training << role;
    else
      EXPECT_THAT(notes, ElementsAre("j:3: spec.replicaSpecs." + role + ".template: " + item.note));
    EXPECT_THAT(notes_of(item.training, role + ": {replicas: 0, " + replica + "}"),
                Not(Contains(HasSubstr("asks for"))));
  }
}

TEST(JobNotes, NameSettingsWithoutEffect) {
  const std::string no_ps = "j:2: spec.training.psDevice: cuda has no effect: the job has no ps";
  EXPECT_THAT(notes_of("psDevice: cuda", "chief: {}"), ElementsAre(no_ps));
  EXPECT_THAT(notes_of("psDevice: cuda", "chief: {}, ps: {replicas: 0}"), ElementsAre(no_ps));
  EXPECT_THAT(notes_of("psDevice: cuda", "ps: {}, chief: {}"), IsEmpty());
  EXPECT_THAT(notes_of("psDevice: cpu", "chief: {}"), IsEmpty());
  const std::string nccl = "synchronization: {nccl: always}";
  EXPECT_THAT(notes_of(nccl, "ps: {}, chief: {}"),
              ElementsAre("j:2: spec.training.synchronization.nccl: always has no effect: GPUs do "
                          "not reach parameter servers by NCCL"));
  EXPECT_THAT(notes_of(nccl, "chief: {}, worker: {}"), IsEmpty());
  EXPECT_THAT(notes_of(nccl, "chief: {}, ps: {replicas: 0}"), IsEmpty());
  EXPECT_THAT(notes_of("synchronization: {nccl: auto}", "ps: {}, chief: {}"), IsEmpty());
}

TEST(JobNotes, AreNoneWithoutTrainingOrReplicas) {
  for (const char* text :
       {"{}", "{spec: {replicaSpecs: {ps: {}}}}", "{spec: {training: {devices: 1}}}"})
    EXPECT_THAT(job_notes(Document::parse(text, "j")), IsEmpty()) << text;
}

}  // namespace
}  // namespace muster::api
