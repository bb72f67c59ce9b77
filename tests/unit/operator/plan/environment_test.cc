#include "operator/plan/environment.h"

#include <map>

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

std::string address(Role role, int index) {
  return std::string(api::name_of(role)) + std::to_string(index) + ":2222";
}

std::map<std::string, std::string> variables(const ReplicaEnvironment& environment) {
  return {environment.variables.begin(), environment.variables.end()};
}

TEST(Environment, TfConfigNamesTheClusterWithoutTheEvaluator) {
  const api::TrainingJob job = make_job().ps(2).chief().workers(2).evaluator();
  const ReplicaEnvironment worker = environment(job, Role::worker, 1, 3, address);
  EXPECT_EQ(worker.tf_config.dump(),
            R"({"cluster":{"ps":["ps0:2222","ps1:2222"],"chief":["chief0:2222"],)"
            R"("worker":["worker0:2222","worker1:2222"]},"task":{"type":"worker","index":1}})");
  const ReplicaEnvironment evaluator = environment(job, Role::evaluator, 0, 0, address);
  EXPECT_EQ(evaluator.tf_config["task"].dump(), R"({"type":"evaluator","index":0})");
  EXPECT_EQ(evaluator.tf_config["cluster"], worker.tf_config["cluster"]);
}

TEST(Environment, HoldsWhatAReplicaMustKnow) {
  const api::TrainingJob job = make_job().ps(2).chief().workers(2).evaluator();
  const ReplicaEnvironment worker = environment(job, Role::worker, 1, 3, address);
  const std::map<std::string, std::string> expected = {
      {"TF_CONFIG", worker.tf_config.dump()},
      {"MUSTER_JOB", "mnist"},
      {"MUSTER_JOB_UID", "job-uid"},
      {"MUSTER_ROLE", "worker"},
      {"MUSTER_INDEX", "1"},
      {"MUSTER_ATTEMPT", "3"},
      {"MUSTER_GRACE_SECONDS", "120"},
      {"MUSTER_REPLICAS", R"({"ps":2,"chief":1,"worker":2,"evaluator":1})"},
  };
  EXPECT_EQ(variables(worker), expected);
}

TEST(Environment, SaysHowManyCopiesOfEachShardThereAre) {
  api::TrainingJob job = make_job().ps(2).chief().workers(1);
  EXPECT_FALSE(variables(environment(job, Role::ps, 1, 0, address)).contains("MUSTER_REPLICATION"));
  job.replicas.at(Role::ps).replication = 2;
  for (const Role role : {Role::ps, Role::chief, Role::worker})
    EXPECT_EQ(variables(environment(job, role, 0, 0, address))["MUSTER_REPLICATION"], "2");
}

TEST(Environment, TellsAnEvaluatorThatTrainingHasEnded) {
  api::TrainingJob job = make_job().chief().evaluator();
  const auto of_evaluator = [&] {
    return variables(environment(job, Role::evaluator, 0, 0, address));
  };
  EXPECT_FALSE(of_evaluator().contains("MUSTER_TRAINED"));
  api::Condition decided;
  decided.type = "SuccessCriteriaMet";
  decided.status = true;
  job.status.conditions.push_back(decided);
  EXPECT_EQ(of_evaluator()["MUSTER_TRAINED"], "1");
  job.training = nullptr;
  EXPECT_FALSE(of_evaluator().contains("MUSTER_TRAINED"));
}

TEST(Environment, OfAScriptOfOnesOwnAlsoHasHostsByRoleAndRanks) {
  const api::TrainingJob job = make_job().ps(2).chief().workers(2).own_image();
  auto chief = variables(environment(job, Role::chief, 0, 0, address));
  auto worker = variables(environment(job, Role::worker, 1, 0, address));
  auto ps = variables(environment(job, Role::ps, 1, 0, address));
  for (auto* replica : {&chief, &worker, &ps}) {
    EXPECT_EQ((*replica)["MUSTER_PS_HOSTS"], "ps0:2222,ps1:2222");
    EXPECT_EQ((*replica)["MUSTER_CHIEF_HOSTS"], "chief0:2222");
    EXPECT_EQ((*replica)["MUSTER_WORKER_HOSTS"], "worker0:2222,worker1:2222");
  }
  EXPECT_EQ(chief["RANK"], "0");
  EXPECT_EQ(worker["RANK"], "2");
  EXPECT_EQ(worker["WORLD_SIZE"], "3");
  EXPECT_EQ(worker["MASTER_ADDR"], "chief0");
  EXPECT_EQ(worker["MASTER_PORT"], "2222");
  EXPECT_EQ(worker["PET_NODE_RANK"], "2");
  EXPECT_EQ(worker["PET_NNODES"], "3");
  EXPECT_FALSE(ps.contains("RANK")) << "it is no member";
}

TEST(Environment, OfAScriptWithoutAChiefRanksBeginWithWorker0) {
  const api::TrainingJob job = make_job().workers(2).own_image();
  auto first = variables(environment(job, Role::worker, 0, 0, address));
  EXPECT_EQ(first["RANK"], "0");
  EXPECT_EQ(first["MASTER_ADDR"], "worker0");
  EXPECT_EQ(first["MUSTER_PS_HOSTS"], "");
  EXPECT_EQ(first["MUSTER_CHIEF_HOSTS"], "");
}

TEST(Environment, OfAScriptByItselfHasHostsAndNoTfConfig) {
  const api::TrainingJob job = make_job().workers(1).own_image();
  auto only = variables(environment(job, Role::worker, 0, 0, address));
  EXPECT_EQ(only["MUSTER_WORKER_HOSTS"], "worker0:2222");
  EXPECT_EQ(only["MUSTER_PS_HOSTS"], "");
  EXPECT_FALSE(only.contains("TF_CONFIG"));
  EXPECT_FALSE(only.contains("RANK"));
}

TEST(Environment, ForPytorchAnIpv6AddressHasNoBrackets) {
  const api::TrainingJob job = make_job().workers(2).own_image();
  const auto at = [](Role, int index) { return "[fd00::" + std::to_string(index) + "]:2222"; };
  auto worker = variables(environment(job, Role::worker, 1, 0, at));
  EXPECT_EQ(worker["MASTER_ADDR"], "fd00::0");
  EXPECT_EQ(worker["PET_MASTER_ADDR"], "fd00::0");
  EXPECT_EQ(worker["MASTER_PORT"], "2222");
}

TEST(Environment, OfMusterTrainerHasNoneOfThese) {
  const api::TrainingJob job = make_job().ps(1).chief().workers(2);
  const auto worker = variables(environment(job, Role::worker, 0, 0, address));
  for (const char* name : {"MUSTER_PS_HOSTS", "RANK", "MASTER_ADDR", "PET_NNODES"})
    EXPECT_FALSE(worker.contains(name)) << name;
}

TEST(Environment, SaysMasterWhereTheJobDid) {
  api::TrainingJob job = make_job().ps(1).chief();
  job.says_master = true;
  const ReplicaEnvironment master = environment(job, Role::chief, 0, 0, address);
  EXPECT_TRUE(master.tf_config["cluster"].contains("master"));
  EXPECT_EQ(master.tf_config["task"]["type"], "master");
  EXPECT_EQ(variables(master)["MUSTER_ROLE"], "master");
  EXPECT_EQ(variables(master)["MUSTER_REPLICAS"], R"({"ps":1,"master":1})");
}

TEST(Environment, TfConfigIsUnsetForAJobOfOneReplica) {
  const ReplicaEnvironment only = environment(make_job().chief(), Role::chief, 0, 0, address);
  EXPECT_TRUE(only.tf_config.is_null());
  EXPECT_FALSE(variables(only).contains("TF_CONFIG"));
  EXPECT_EQ(variables(only)["MUSTER_REPLICAS"], R"({"chief":1})");
}

TEST(Environment, OfAnElasticJobHasItsLimitsAndATfConfigEvenAlone) {
  const api::TrainingJob job = make_job().workers(1).elastic(1, 4);
  const ReplicaEnvironment worker = environment(job, Role::worker, 0, 0, address);
  EXPECT_EQ(variables(worker)["MUSTER_ELASTIC"],
            R"({"minReplicas":1,"maxReplicas":4,"batch":"global"})");
  EXPECT_EQ(variables(worker)["TF_CONFIG"],
            R"({"cluster":{"worker":["worker0:2222"]},"task":{"type":"worker","index":0}})");
  api::TrainingJob per_replica = job;
  per_replica.elastic->batch = api::ElasticBatch::per_replica;
  EXPECT_EQ(variables(environment(per_replica, Role::worker, 0, 0, address))["MUSTER_ELASTIC"],
            R"({"minReplicas":1,"maxReplicas":4,"batch":"perReplica"})");
  const api::TrainingJob fixed = make_job().chief().workers(1);
  EXPECT_FALSE(
      variables(environment(fixed, Role::chief, 0, 0, address)).contains("MUSTER_ELASTIC"));
}

TEST(Environment, OfAJobWhoseWorkersMayChangeHasATfConfigEvenAlone) {
  const api::TrainingJob job = make_job().workers(1).own_image().dynamic_workers();
  const ReplicaEnvironment worker = environment(job, Role::worker, 0, 0, address);
  EXPECT_EQ(variables(worker)["TF_CONFIG"],
            R"({"cluster":{"worker":["worker0:2222"]},"task":{"type":"worker","index":0}})");
  EXPECT_FALSE(variables(worker).contains("MUSTER_ELASTIC"));
}

TEST(Environment, RolesWithoutReplicasAreNotInTheCluster) {
  const ReplicaEnvironment chief =
      environment(make_job().ps(1).chief().workers(0), Role::chief, 0, 0, address);
  EXPECT_FALSE(chief.tf_config["cluster"].contains("worker"));
}

}  // namespace
}  // namespace muster::plan
