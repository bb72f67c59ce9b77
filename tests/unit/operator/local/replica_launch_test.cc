#include "operator/local/replica_launch.h"

#include <gtest/gtest.h>

namespace muster::local {
namespace {

using api::Role;

api::TrainingJob job_of(std::map<Role, int> replicas) {
  api::TrainingJob job;
  for (const auto& [role, count] : replicas) job.replicas[role].replicas = count;
  return job;
}

TEST(ThreadsOfEach, ShareTheMachineAmongThoseThatCompute) {
  struct Case {
    std::map<Role, int> replicas;
    int cpus, threads;
  };
  const Case cases[] = {
      {{{Role::chief, 1}}, 8, 0},
      {{{Role::ps, 1}, {Role::chief, 1}, {Role::worker, 1}, {Role::evaluator, 1}}, 2, 1},
      {{{Role::ps, 2}, {Role::worker, 3}}, 8, 2},
      {{{Role::ps, 1}, {Role::worker, 9}}, 4, 1},
      {{{Role::chief, 1}, {Role::evaluator, 1}}, 4, 4},
      {{{Role::chief, 1}, {Role::worker, 0}}, 4, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(threads_of_each(job_of(c.replicas), c.cpus), c.threads)
        << c.cpus << " CPUs, case " << (&c - cases);
  }
}

// On which bits depend: those of an elastic job are the same however many workers it has.
TEST(ThreadsOfEach, StayWhenAJobIsScaled) {
  for (const int workers : {1, 3, 7}) {
    api::TrainingJob job = job_of({{Role::chief, 1}, {Role::worker, workers}});
    job.elastic = api::Elastic{1, 7};
    EXPECT_EQ(threads_of_each(job, 16), 2) << workers;
  }
  api::TrainingJob alone = job_of({{Role::worker, 1}});
  alone.elastic = api::Elastic{1, 2};
  EXPECT_EQ(threads_of_each(alone, 16), 8);
}

TEST(VisibleGpus, AreEachReplicasOwn) {
  api::TrainingJob job =
      job_of({{Role::ps, 1}, {Role::chief, 1}, {Role::worker, 2}, {Role::evaluator, 1}});
  job.training = Json{{"device", "auto"}};
  const auto of = [&](Role role, int index, int gpus) {
    return visible_gpus(job, role, index, gpus).value_or("(unset)");
  };
  EXPECT_EQ(of(Role::ps, 0, 4), "");
  EXPECT_EQ(of(Role::chief, 0, 4), "0");
  EXPECT_EQ(of(Role::worker, 0, 4), "1");
  EXPECT_EQ(of(Role::worker, 1, 4), "2");
  EXPECT_EQ(of(Role::evaluator, 0, 4), "3");
  EXPECT_EQ(of(Role::evaluator, 0, 3), "0");
  EXPECT_EQ(of(Role::chief, 0, 1), "(unset)");
  EXPECT_EQ(of(Role::chief, 0, 0), "(unset)");
  job.training["devices"] = 2;
  EXPECT_EQ(of(Role::worker, 0, 8), "2,3");
  EXPECT_EQ(of(Role::worker, 1, 4), "0,1");
  job.training["device"] = "cpu";
  EXPECT_EQ(of(Role::chief, 0, 4), "(unset)");
}

TEST(DevicesOfEach, AreItsShareOfTheMachinesGpus) {
  const auto with = [](int gpus, std::vector<std::string> environment) {
    return Setting{
        JobDirectory("/jobs/all"), "/", {}, std::move(environment), 4, gpus, nullptr, std::nullopt};
  };
  const api::TrainingJob alone = job_of({{Role::chief, 1}});
  EXPECT_EQ(devices_of_each(alone, with(0, {})), 1);
  EXPECT_EQ(devices_of_each(alone, with(8, {"CUDA_DEVICE_ORDER=PCI_BUS_ID"})), 8);
  EXPECT_EQ(devices_of_each(alone, with(8, {"CUDA_VISIBLE_DEVICES=4,5,6"})), 3);
  EXPECT_EQ(devices_of_each(alone, with(2, {"CUDA_VISIBLE_DEVICES=0,1,2"})), 2);
  EXPECT_EQ(devices_of_each(alone, with(8, {"CUDA_VISIBLE_DEVICES="})), 1);
  EXPECT_EQ(devices_of_each(alone, with(0, {"CUDA_VISIBLE_DEVICES=0,1"})), 1);
  const api::TrainingJob several =
      job_of({{Role::ps, 2}, {Role::chief, 1}, {Role::worker, 2}, {Role::evaluator, 1}});
  EXPECT_EQ(devices_of_each(several, with(8, {})), 2);
  EXPECT_EQ(devices_of_each(several, with(2, {})), 1);
  api::TrainingJob chooses = alone;
  chooses.replicas[Role::chief].pod_template = Json::parse(R"({"spec": {"containers": [
      {"name": "trainer", "env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "2,3"}]}]}})");
  EXPECT_EQ(devices_of_each(chooses, with(8, {"CUDA_VISIBLE_DEVICES=0"})), 2);
  chooses.replicas[Role::worker].replicas = 1;
  EXPECT_EQ(devices_of_each(chooses, with(8, {})), 2);
  EXPECT_EQ(devices_of_each(chooses, with(8, {"CUDA_VISIBLE_DEVICES=0"})), 1);
}

// They exchange there without the host's memory.
TEST(VisibleGpus, OfAPsOnAGpuAreThoseOfTheReplicaOfItsIndex) {
  api::TrainingJob job = job_of({{Role::ps, 3}, {Role::worker, 3}});
  job.training = Json{{"device", "auto"}, {"psDevice", "cuda"}};
  for (const int index : {0, 1, 2}) {
    EXPECT_EQ(visible_gpus(job, Role::ps, index, 2).value_or("(unset)"),
              visible_gpus(job, Role::worker, index, 2));
  }
  job.training["device"] = "cpu";
  EXPECT_EQ(visible_gpus(job, Role::ps, 1, 2), "1");
}

TEST(CheckRunsHere, NamesContainersThatOnlyAClusterRuns) {
  api::TrainingJob job = job_of({{Role::worker, 1}});
  job.replicas[Role::worker].pod_template = Json::parse(R"({"spec": {
      "initContainers": [{"name": "fetch"}],
      "containers": [{"name": "sidecar"}, {"name": "trainer", "command": ["true"]}]}})");
  const Setting setting{
      JobDirectory("/jobs/script"), "/", {}, {"PATH=/usr/bin:/bin"}, 4, 0, nullptr, std::nullopt};
  const std::vector<std::string> expected = {"the init container fetch of worker is not run here",
                                             "the container sidecar of worker is not run here"};
  EXPECT_EQ(check_runs_here(job, Document::of(Json::object(), "job.yaml"), setting, true),
            expected);
}

TEST(ReplicaVariables, NameTheFileOfRequestsForCheckpointsToTheLeaderOfATraining) {
  api::TrainingJob job = job_of({{Role::ps, 1}, {Role::chief, 1}, {Role::worker, 1}});
  const Setting setting{JobDirectory("/jobs/mnist"), "/", {}, {}, 4, 0, nullptr, std::nullopt};
  Addresses addresses;
  for (const std::string& name : port_names(job)) addresses.ports[name] = 1;
  const auto file_of = [&](Role role) -> std::string {
    for (const auto& [name, value] : replica_variables(job, role, 0, 0, setting, addresses))
      if (name == "MUSTER_CHECKPOINT_REQUEST") return value;
    return "(unset)";
  };
  EXPECT_EQ(file_of(Role::chief), "(unset)");
  job.training = Json{{"epochs", 1}};
  EXPECT_EQ(file_of(Role::chief), "/jobs/mnist/checkpoint-request");
  EXPECT_EQ(file_of(Role::worker), "(unset)");
  EXPECT_EQ(file_of(Role::ps), "(unset)");
}

TEST(PortNames, AreThoseOfWorkersToComeToo) {
  api::TrainingJob job = job_of({{Role::chief, 1}, {Role::worker, 1}, {Role::evaluator, 1}});
  const std::vector<std::string> fixed = {"chief-0", "chief-0/http", "worker-0", "worker-0/http",
                                          "evaluator-0/http"};
  EXPECT_EQ(port_names(job), fixed);
  job.elastic = api::Elastic{1, 2};
  const std::vector<std::string> elastic = {"chief-0",         "chief-0/http", "worker-0",
                                            "worker-0/http",   "worker-1",     "worker-1/http",
                                            "evaluator-0/http"};
  EXPECT_EQ(port_names(job), elastic);
}

}  // namespace
}  // namespace muster::local
