#include "operator/api/training_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/schema.h"
#include "operator/api/status.h"
#include "operator/api/templates.h"
#include "operator/api/validate.h"

namespace muster::api {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

TrainingJob job_of(const std::string& yaml) {
  Document document = Document::parse(yaml, "job.yaml");
  const auto problems = validate(document);
  EXPECT_TRUE(problems.empty()) << problems.front().text();
  return to_training_job(document.value());
}

std::string own_image(const std::string& spec) {
  const std::string replica =
      "{replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}";
  std::string yaml =
      "apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: own}\nspec: " + spec;
  for (size_t at; (at = yaml.find("REPLICA")) != std::string::npos;) yaml.replace(at, 7, replica);
  return yaml;
}

TEST(TrainingJob, ReadsDefaults) {
  const TrainingJob job = job_of(own_image("{replicaSpecs: {chief: REPLICA, worker: REPLICA}}"));
  EXPECT_EQ(job.name, "own");
  EXPECT_EQ(job.name_space, "default");
  EXPECT_FALSE(job.suspend);
  EXPECT_FALSE(job.deleting);
  EXPECT_EQ(job.strategy, "parameterServer");
  EXPECT_TRUE(job.training.is_null());
  EXPECT_EQ(job.storage_mount_path, "/muster");
  EXPECT_EQ(job.replicas.size(), 2u);
  EXPECT_EQ(job.decided_by, DecidedBy::chief);
  EXPECT_EQ(job.run_policy.backoff_limit, 6);
  EXPECT_EQ(job.run_policy.clean_pod_policy, CleanPodPolicy::running);
  EXPECT_EQ(job.run_policy.evaluator_timeout_seconds, 600);
  EXPECT_FALSE(job.run_policy.active_deadline_seconds);
  EXPECT_EQ(job.startup_order, StartupOrder::any);
  EXPECT_FALSE(job.elastic);
  EXPECT_EQ(job.status, JobStatus{});
}

TEST(TrainingJob, AllDevicesAreThoseOfTheTemplateUntilTheMachineIsKnown) {
  const struct {
    const char* device;
    const char* chief;
    const char* worker;
    int64_t devices;
    bool all;
  } cases[] = {
      {"auto", "{}", "{}", 1, true},
      {"cuda", "{nvidia.com/gpu: 4}", "{}", 4, true},
      {"auto", "{}", "{nvidia.com/gpu: '2'}", 2, true},
      {"auto", "{nvidia.com/gpu: 1000}", "{}", 64, true},
      {"auto", "{nvidia.com/mig-1g.10gb: 1}", "{}", 1, true},
      {"cpu", "{nvidia.com/gpu: 4}", "{}", 1, false},
  };
  for (const auto& item : cases) {
    const auto of = [](const char* limits) {
      return "{template: {spec: {containers: [{name: a, resources: {limits: " +
             std::string(limits) + "}}]}}}";
    };
    TrainingJob job = to_training_job(
        Document::parse("spec: {training: {devices: auto, device: " + std::string(item.device) +
                            "}, replicaSpecs: {chief: " + of(item.chief) +
                            ", worker: " + of(item.worker) + "}}",
                        "j")
            .value());
    EXPECT_EQ(job.training["devices"], item.devices) << item.device << item.chief << item.worker;
    EXPECT_EQ(job.all_devices, item.all);
    set_devices(job, 3);
    EXPECT_EQ(job.training["devices"], item.all ? 3 : item.devices);
  }
  TrainingJob given = to_training_job(Json::parse(R"({"spec": {"training": {"devices": 2}}})"));
  set_devices(given, 3);
  EXPECT_EQ(given.training["devices"], 2);
}

TEST(TrainingJob, ReadsWhatIsWritten) {
  const TrainingJob job = job_of(own_image(R"({
    suspend: true, managedBy: other/controller, strategy: collective,
    storage: {mountPath: /data, volume: {emptyDir: {}}},
    replicaSpecs: {master: REPLICA, worker: REPLICA, ps: REPLICA},
    successPolicy: {decidedBy: workerZero},
    failurePolicy: {rules: [{onExitCodes: [1, 2], roles: [worker, master], action: FailJob},
                            {onReason: [OOMKilled], action: Ignore}]},
    startupPolicy: {order: InOrder},
    schedulingPolicy: {gang: volcano, minAvailable: 1, queue: q},
    runPolicy: {backoffLimit: 0, activeDeadlineSeconds: 10, ttlSecondsAfterFinished: 0,
                cleanPodPolicy: None, evaluatorTimeoutSeconds: 5}})"));
  EXPECT_TRUE(job.suspend);
  EXPECT_EQ(job.managed_by, "other/controller");
  EXPECT_EQ(job.strategy, "collective");
  EXPECT_EQ(job.storage_mount_path, "/data");
  EXPECT_TRUE(job.storage_volume.contains("emptyDir"));
  EXPECT_TRUE(job.says_master);
  EXPECT_EQ(role_name(job, Role::chief), "master");
  EXPECT_EQ(role_name(job, Role::ps), "ps");
  EXPECT_EQ(job.replicas.count(Role::chief), 1u);
  EXPECT_EQ(job.decided_by, DecidedBy::worker_zero);
  ASSERT_EQ(job.failure_rules.size(), 2u);
  EXPECT_THAT(job.failure_rules[0].on_exit_codes, ElementsAre(1, 2));
  EXPECT_THAT(job.failure_rules[0].roles, ElementsAre(Role::worker, Role::chief));
  EXPECT_EQ(job.failure_rules[0].action, FailureAction::fail_job);
  EXPECT_THAT(job.failure_rules[1].on_reasons, ElementsAre("OOMKilled"));
  EXPECT_EQ(job.failure_rules[1].action, FailureAction::ignore);
  EXPECT_EQ(job.startup_order, StartupOrder::in_order);
  EXPECT_EQ(job.scheduling_policy["queue"], "q");
  EXPECT_EQ(job.run_policy.backoff_limit, 0);
  EXPECT_EQ(job.run_policy.active_deadline_seconds, 10);
  EXPECT_EQ(job.run_policy.ttl_seconds_after_finished, 0);
  EXPECT_EQ(job.run_policy.clean_pod_policy, CleanPodPolicy::none);
  EXPECT_EQ(job.run_policy.evaluator_timeout_seconds, 5);
}

constexpr const char* kElastic = R"(
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: elastic}
spec:
  strategy: collective
  training: {model: {name: mnist-mlp}, data: {train: {idx: {images: i, labels: l}}}, epochs: 1}
  replicaSpecs: {chief: {}, worker: {replicas: 2}}
  elastic: {minReplicas: 1, maxReplicas: 8)";

TEST(TrainingJob, OfAClusterMayBeAskedForACheckpoint) {
  const std::string asks = "  annotations: {muster.dev/checkpoint: now}\n";
  std::string manifest = std::string(kElastic) + "}\n";
  TrainingJob job = job_of(manifest);
  EXPECT_EQ(job.checkpoint_request, "");
  EXPECT_FALSE(keeps_checkpoints(job));
  manifest.replace(manifest.find("{name: elastic}"), 15, "\n  name: elastic\n" + asks);
  EXPECT_FALSE(keeps_checkpoints(job_of(manifest + "  storage: {volume: {emptyDir: {}}}\n")));
  job = job_of(manifest + "  storage: {volume: {persistentVolumeClaim: {claimName: shared}}}\n");
  EXPECT_EQ(job.checkpoint_request, "now");
  EXPECT_TRUE(keeps_checkpoints(job));
  job.training = nullptr;
  EXPECT_FALSE(keeps_checkpoints(job));
}

TEST(TrainingJob, MayBeElastic) {
  const TrainingJob job = job_of(std::string(kElastic) + ", batch: perReplica}");
  ASSERT_TRUE(job.elastic);
  EXPECT_EQ(job.elastic->min_replicas, 1);
  EXPECT_EQ(job.elastic->max_replicas, 8);
  EXPECT_EQ(job.elastic->batch, ElasticBatch::per_replica);
  EXPECT_EQ(most_replicas(job, Role::worker), 8);
  EXPECT_EQ(most_replicas(job, Role::chief), 1);
  EXPECT_EQ(most_replicas(job, Role::evaluator), 0);
  EXPECT_EQ(job_of(std::string(kElastic) + "}").elastic->batch, ElasticBatch::global);
}

TEST(TrainingJob, OfOnesOwnProgramsMaySayThatWorkersComeAndGo) {
  const char* const own = "{replicaSpecs: {worker: REPLICA}";
  EXPECT_FALSE(job_of(own_image(std::string(own) + "}")).enable_dynamic_worker);
  const TrainingJob dynamic = job_of(own_image(std::string(own) + ", enableDynamicWorker: true}"));
  EXPECT_TRUE(dynamic.enable_dynamic_worker);
  EXPECT_TRUE(workers_may_change(dynamic));
}

TEST(TrainingJob, IsDecidedByAllWorkersWhereThereIsNoChief) {
  EXPECT_EQ(job_of(own_image("{replicaSpecs: {worker: REPLICA}}")).decided_by,
            DecidedBy::all_workers);
}

JobStatus full_status() {
  const Time time = Time(1795262400250ms);
  JobStatus status;
  status.observed_generation = 3;
  status.conditions = {{"Running", true, "AllReplicasReady", "all \"ready\"\n", time},
                       {"Suspended", false, "Resumed", "", Time{}}};
  status.start_time = time;
  status.completion_time = time + 1ms;
  status.final_checkpoint_time = time + 2ms;
  status.trained_to = TrainingLength{40, std::nullopt};
  status.replica_statuses[Role::chief] = {1, 1, 0, 0, 2};
  status.replica_statuses[Role::evaluator] = {0, 0, 1, 0, 0};
  ReplicaRecord record;
  record.role = Role::worker;
  record.index = 4;
  record.attempt = 7;
  record.restarts = 2;
  record.succeeded = true;
  record.failed = true;
  record.exit_code = 0;
  record.not_before = time + 5s;
  record.failures_in_row = 3;
  record.restarts_in_place = 2;
  record.replacing = "uid";
  record.avoided_nodes = {"node-b", "node-a"};
  record.in_round = true;
  record.failed_at = time + 7s;
  status.records = {ReplicaRecord{}, record};
  status.counted_uids = {"a", "b"};
  status.restarts = 4;
  status.run = 2;
  status.group = {{Role::chief, 1}, {Role::worker, 3}};
  status.restart_run = 1;
  status.restart_reasons = {{Role::ps, {{"Evicted", 1}}},
                            {Role::worker, {{"NodeLost", 2}, {"ReplicaFailed", 1}}}};
  status.progress = {{"step", 12}, {"loss", "0.25"}};
  return status;
}

TEST(JobStatus, ComesBackWithoutLoss) {
  for (const JobStatus& status : {JobStatus{}, full_status()}) {
    Json job = {{"status", to_json(status)}};
    EXPECT_EQ(to_training_job(job).status, status);
    EXPECT_EQ(to_training_job(Json::parse(job.dump())).status, status);
  }
}

TEST(JobStatus, FitsTheSchema) {
  Document document = Document::parse("", "status");
  document.value() = to_json(full_status());
  for (const Problem& problem :
       apply_schema(training_job_schema()["properties"]["status"], document)) {
    ADD_FAILURE() << problem.text();
  }
}

TEST(JobStatus, ReadsAnythingAsAStatus) {
  for (const char* text : {"null", "1", "{conditions: 3, records: [1, {role: x}, {}], run: x}",
                           "{startTime: yesterday, replicaStatuses: [], countedUids: {a: 1}}"}) {
    EXPECT_EQ(to_job_status(Document::parse(text, "x").value()).records.size(), 0u) << text;
  }
}

TEST(JobStatus, FindsConditions) {
  const JobStatus status = full_status();
  EXPECT_TRUE(status.is_true("Running"));
  EXPECT_FALSE(status.is_true("Suspended"));
  EXPECT_FALSE(status.is_true("Failed"));
  EXPECT_EQ(status.find("Failed"), nullptr);
  EXPECT_EQ(status.find("Suspended")->reason, "Resumed");
}

TEST(JobStatus, CountsOfReplicasAreWrittenAlsoWhereTheyAreZero) {
  JobStatus status;
  status.replica_statuses[Role::worker].ready = 2;
  const Json counts = {
      {"ready", 2}, {"active", 0}, {"succeeded", 0}, {"failed", 0}, {"restarts", 0}};
  EXPECT_EQ(to_json(status)["replicaStatuses"]["worker"], counts);
  EXPECT_EQ(to_json(status)["restarts"], 0);
}

TEST(JobStatus, SaysWhatIsNotKnown) {
  JobStatus status;
  status.conditions = {{"Accepted", false, "Unknown", "exceeded quota", Time(1ms)}};
  const Json value = to_json(status);
  EXPECT_EQ(value["conditions"][0]["status"], "Unknown");
  EXPECT_EQ(to_job_status(value).conditions, status.conditions);
}

TEST(Times, AreReadAndWritten) {
  const struct {
    const char* text;
    std::optional<int64_t> milliseconds;
  } cases[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"2000-02-29T12:34:56.789Z", 951827696789},
      {"2000-02-29T12:34:56.789123456Z", 951827696789},
      {"1969-12-31T23:59:59.999Z", -1},
      {"2001-02-29T00:00:00Z", std::nullopt},
      {"2000-01-01T24:00:00Z", std::nullopt},
      {"2000-01-01 00:00:00Z", std::nullopt},
      {"2000-01-01T00:00:00", std::nullopt},
      {"2000-01-01T00:00:00+01:00", std::nullopt},
      {"2000-01-01", std::nullopt},
      {"", std::nullopt},
  };
  for (const auto& item : cases) {
    const auto time = parse_time(item.text);
    ASSERT_EQ(time.has_value(), item.milliseconds.has_value()) << item.text;
    if (!time) continue;
    EXPECT_EQ(time->time_since_epoch().count(), *item.milliseconds) << item.text;
    EXPECT_EQ(parse_time(format_time(*time)), time);
  }
  EXPECT_EQ(format_time(Time(-1ms)), "1969-12-31T23:59:59.999Z");
}

TEST(CountingContainer, IsTrainerThenTensorflowThenTheOnlyOne) {
  const auto name = [](const char* containers) {
    const Json pod =
        Document::parse(std::string("{spec: {containers: ") + containers + "}}", "x").value();
    const Json& container = counting_container(pod);
    return container.is_null() ? std::string() : container["name"].get<std::string>();
  };
  EXPECT_EQ(name("[{name: tensorflow}, {name: trainer}]"), "trainer");
  EXPECT_EQ(name("[{name: side}, {name: tensorflow}]"), "tensorflow");
  EXPECT_EQ(name("[{name: side}]"), "side");
  EXPECT_EQ(name("[{name: side}, {name: other}]"), "");
  EXPECT_EQ(name("[]"), "");
}

}  // namespace
}  // namespace muster::api
