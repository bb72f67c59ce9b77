#include "operator/api/crd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/documents/json.h"
#include "common/system/file.h"
#include "operator/api/progress.h"
#include "operator/api/status.h"
#include "operator/api/training_job.h"
#include "operator/api/validate.h"
#include "tests/integration/kube/api_server.h"

namespace muster::integration {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kJobs = "/apis/muster.dev/v1alpha1/namespaces/default/trainingjobs";
constexpr const char* kMergePatch = "application/merge-patch+json";

struct Answer {
  int status;
  Json body;
};

bool taken(const Answer& answer) {
  return answer.status == 200 || answer.status == 201;
}

// Without the members that are null, at any depth.
Json without_nulls(const Json& value) {
  Json result = value;
  if (result.is_object()) {
    for (const auto& [key, child] : value.items()) {
      if (child.is_null()) {
        result.erase(key);
      } else {
        result[key] = without_nulls(child);
      }
    }
  } else if (result.is_array()) {
    for (Json& child : result) child = without_nulls(child);
  }
  return result;
}

// The same whatever the order of members.
nlohmann::json sorted(const Json& value) {
  return nlohmann::json::parse(value.dump());
}

// One server for all tests of the file; each takes names of its own.
class TrainingJobs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<ApiServer>();
    const std::string definition = api::custom_resource_definition().dump();
    const auto applied = server_->kubectl({"apply", "--server-side", "-f", "-"}, definition);
    ASSERT_EQ(applied.code, 0) << applied.text;
    ASSERT_TRUE(eventually([] { return send("GET", kJobs).status == 200; }));
    ASSERT_TRUE(eventually([] { return server_->kubectl({"get", "trainingjobs"}).code == 0; }));
  }
  static void TearDownTestSuite() { server_.reset(); }

  static ApiServer& server() { return *server_; }

  static Answer send(const std::string& method, const std::string& path, const Json& body = {},
                     const std::string& type = "application/json") {
    const test::TemporaryFolder files;
    std::vector<std::string> command = {"/usr/bin/curl",
                                        "-sS",
                                        "--max-time",
                                        "60",
                                        "-X",
                                        method,
                                        "--cacert",
                                        server_->certificate("ca.crt"),
                                        "--cert",
                                        server_->certificate("admin.crt"),
                                        "--key",
                                        server_->certificate("admin.key"),
                                        "-o",
                                        files.path() / "answer",
                                        "-w",
                                        "%{http_code}",
                                        server_->url() + path};
    // A server that answers without reading a body breaks off the sending of it: no error of a GET.
    if (!body.is_null()) {
      write_file_atomically(files.path() / "body", body.dump());
      const std::string data = "@" + (files.path() / "body").string();
      command.insert(command.end(), {"-H", "Content-Type: " + type, "--data-binary", data});
    }
    Process curl(command, {}, files.path() / "status", Process::Limits{});
    if (curl.wait() != 0) throw std::runtime_error("curl: " + read_file(files.path() / "status"));
    const std::string text = read_file(files.path() / "answer");
    return {std::stoi(read_file(files.path() / "status")), Json::parse(text, nullptr, false)};
  }

  static Answer create(const Json& job, bool keep = false) {
    const std::string query = keep ? "" : "&dryRun=All";
    return send("POST", std::string(kJobs) + "?fieldValidation=Strict" + query, job);
  }

  static Answer change(const std::string& name, const Json& patch,
                       const std::string& subresource = "") {
    return send("PATCH", std::string(kJobs) + "/" + name + subresource, patch, kMergePatch);
  }

  static void set_suspended(const std::string& name, bool suspended) {
    set_condition(name, "Suspended", suspended);
  }
  // Takes the place of the conditions that there were.
  static void set_condition(const std::string& name, const char* type, bool holds) {
    const Json condition = {{"type", type}, {"status", holds ? "True" : "False"}};
    const Answer answer =
        change(name, {{"status", {{"conditions", Json::array({condition})}}}}, "/status");
    ASSERT_TRUE(taken(answer)) << answer.body.dump();
  }

 private:
  static std::unique_ptr<ApiServer> server_;
};
std::unique_ptr<ApiServer> TrainingJobs::server_;

Json job_named(const std::string& name) {
  Document document = Document::load(MUSTER_SOURCE_DIR "/examples/mnist-mlp.yaml");
  document.set("metadata.name", name);
  return document.value();
}

TEST_F(TrainingJobs, AreDefinedByAStructuralSchema) {
  const auto got = server().kubectl({"get", "crd", "trainingjobs.muster.dev", "-o", "json"});
  const Json definition = Json::parse(got.text);
  std::map<std::string, std::string> conditions;
  for (const Json& condition : definition["status"]["conditions"]) {
    conditions[condition["type"]] = condition["status"];
  }
  EXPECT_EQ(conditions["NamesAccepted"], "True");
  EXPECT_EQ(conditions["Established"], "True");
  EXPECT_FALSE(conditions.contains("NonStructuralSchema"));
}

TEST_F(TrainingJobs, AreTakenAsTheExamplesHaveThemWithTheDefaultsOfValidate) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MUSTER_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    ++examples;
    Document document = Document::load(entry.path());
    const Answer answer = create(document.value());
    ASSERT_TRUE(taken(answer)) << entry.path() << "\n" << answer.body.dump(1);
    EXPECT_TRUE(api::validate(document).empty());
    EXPECT_EQ(sorted(answer.body["spec"]), sorted(without_nulls(document.value()["spec"])))
        << entry.path();
  }
  EXPECT_GE(examples, 4);
}

TEST_F(TrainingJobs, TakeANullForWhatIsLeftOut) {
  Json job = job_named("nulls");
  for (const char* field : {"elastic", "successPolicy", "failurePolicy"}) job["spec"][field] = {};
  job["spec"]["training"]["steps"] = nullptr;
  job["spec"]["training"]["checkpoint"] = {{"everySeconds", nullptr}, {"everySteps", nullptr}};
  job["spec"]["storage"] = nullptr;
  const Answer answer = create(job);
  ASSERT_TRUE(taken(answer)) << answer.body.dump(1);
  const Json& checkpoint = answer.body["spec"]["training"]["checkpoint"];
  EXPECT_TRUE(checkpoint.contains("everySeconds") && checkpoint["everySeconds"].is_null());
  EXPECT_FALSE(checkpoint.contains("everySteps"));
  EXPECT_EQ(answer.body["spec"]["storage"]["mountPath"], "/muster");
}

// Whether the answer names `field` and says `text` of it. A field that is unknown or cannot be read
// at all is told before the schema is asked, in one message.
bool says(const Answer& answer, const std::string& field, const std::string& text) {
  for (const Json& cause : member(member(answer.body, "details"), "causes")) {
    if (string_or(cause, "field", "") == field &&
        string_or(cause, "message", "").find(text) != std::string::npos) {
      return true;
    }
  }
  const std::string message = string_or(answer.body, "message", "");
  return answer.status == 400 && message.find(text) != std::string::npos &&
         message.find(split_path(field).back()) != std::string::npos;
}

TEST_F(TrainingJobs, AreRefusedAsTheTableSays) {
  const Document table =
      Document::load(MUSTER_SOURCE_DIR "/tests/fixtures/trainingjob/refused.yaml");
  for (const auto& [name, job] : table.value()["jobs"].items()) {
    const Answer answer = create(job);
    EXPECT_TRUE(taken(answer)) << name << "\n" << answer.body.dump(1);
  }
  for (const Json& entry : table.value()["cases"]) {
    Document document =
        Document::parse(table.value()["jobs"][entry["job"].get<std::string>()].dump(), "job.yaml");
    for (const auto& [path, value] : entry["set"].items()) document.set(path, value.dump());
    const Answer answer = create(document.value());
    const std::string by_rule = "expected " + entry["expected"].get<std::string>();
    const std::string text = string_or(entry, "server", by_rule);
    const std::string shown = entry.dump() + "\n" + answer.body.dump(1);
    if (text == "accepts") {
      EXPECT_TRUE(taken(answer)) << shown;
      EXPECT_TRUE(entry.contains("because")) << shown;
    } else {
      EXPECT_FALSE(taken(answer)) << shown;
      EXPECT_TRUE(says(answer, string_or(entry, "server_field", entry["field"]), text)) << shown;
    }
  }
}

TEST_F(TrainingJobs, KeepTrainingTemplatesStorageAndRolesWhileTheyAreNotSuspended) {
  const auto env = [](const char* value) {
    const Json variable = {{"name", "A"}, {"value", value}};
    const Json container = {{"name", "trainer"}, {"env", Json::array({variable})}};
    const Json containers = Json::array({container});
    return Json{{"spec", {{"containers", containers}, {"nodeSelector", {{"disk", value}}}}}};
  };
  Json job = job_named("kept");
  job["spec"]["storage"]["volume"] = {{"persistentVolumeClaim", {{"claimName", "shared"}}}};
  job["spec"]["replicaSpecs"]["worker"]["template"] = env("a");
  const Answer created = create(job, true);
  ASSERT_TRUE(taken(created)) << created.body.dump(1);

  Json other_selector = env("a");
  other_selector["spec"]["nodeSelector"]["disk"] = "b";
  const Json other_volume = {{"persistentVolumeClaim", nullptr}, {"emptyDir", {{"a", "b"}}}};
  const std::vector<Json> trainings = {
      {{"training", {{"batchSize", 48}}}},
      {{"training", {{"optimizer", {{"beta1", 0.5}}}}}},
      {{"training", {{"epochs", 77}}}},
      {{"training", {{"epochs", nullptr}, {"steps", 77000}}}},
  };
  const std::vector<Json> changes = {
      {{"security", {{"transport", "none"}}}},
      {{"storage", {{"mountPath", "/other"}}}},
      {{"storage", {{"volume", other_volume}}}},
      {{"replicaSpecs", {{"evaluator", nullptr}}}},
      {{"replicaSpecs", {{"chief", nullptr}, {"master", Json::object()}}}},
      {{"replicaSpecs", {{"worker", {{"template", nullptr}}}}}},
      {{"replicaSpecs", {{"worker", {{"template", env("c")}}}}}},
      {{"replicaSpecs", {{"worker", {{"template", other_selector}}}}}},
      {{"replicaSpecs", {{"ps", {{"template", env("a")}}}}}},
      {{"replicaSpecs", {{"ps", {{"replicas", 2}, {"replication", 2}}}}}},
  };
  const std::vector<Json> sizes = {{{"replicaSpecs", {{"worker", {{"replicas", 3}}}}}},
                                   {{"replicaSpecs", {{"worker", {{"replicas", 0}}}}}},
                                   {{"replicaSpecs", {{"ps", {{"replicas", 2}}}}}}};
  const std::string dry = "?dryRun=All";
  const auto try_these = [&](const std::vector<Json>& patches, bool suspended,
                             const std::string& field, const std::string& text) {
    for (const Json& patch : patches) {
      const Answer answer =
          send("PATCH", std::string(kJobs) + "/kept" + dry, {{"spec", patch}}, kMergePatch);
      EXPECT_EQ(taken(answer), suspended) << patch.dump() << "\n" << answer.body.dump(1);
      EXPECT_TRUE(suspended || says(answer, field, text)) << patch.dump() << "\n"
                                                          << answer.body.dump(1);
    }
  };
  const auto try_all = [&](bool suspended) {
    try_these(trainings, suspended, "spec.training",
              "expected no change of training but while the job is suspended");
    try_these(changes, suspended, "spec",
              "expected no change of storage, security, templates, ps.replication");
    try_these(sizes, suspended, "spec.replicaSpecs", "suspend it first");
  };
  try_all(false);  // no status yet
  set_suspended("kept", false);
  try_all(false);
  // A status beside the spec is dropped, so that it cannot pass for a write of status alone.
  const Json disguised = {{"spec", trainings[0]}, {"status", {{"writes", 7}}}};
  EXPECT_EQ(send("PATCH", std::string(kJobs) + "/kept" + dry, disguised, kMergePatch).status, 422);
  set_suspended("kept", true);
  try_all(true);

  set_suspended("kept", false);
  const Json rule = {{"onExitCodes", {7}}, {"action", "FailJob"}};
  const std::vector<Json> free = {
      {{"suspend", true}},
      {{"replicaSpecs", {{"evaluator", {{"replicas", 0}}}}}},
      {{"replicaSpecs", {{"worker", {{"restartPolicy", "Never"}}}}}},
      {{"runPolicy", {{"backoffLimit", 9}}}},
      {{"successPolicy", {{"decidedBy", "workerZero"}}}},
      {{"failurePolicy", {{"rules", Json::array({rule})}}}},
      {{"startupPolicy", {{"order", "InOrder"}}}},
      {{"schedulingPolicy", {{"gang", "volcano"}, {"minAvailable", 1}}}}};
  for (const Json& patch : free) {
    const Answer answer = change("kept", {{"spec", patch}});
    EXPECT_TRUE(taken(answer)) << patch.dump() << "\n" << answer.body.dump(1);
  }
}

TEST_F(TrainingJobs, ThatHaveSucceededMayBeGivenMoreToTrainAndNothingElse) {
  Json by_epochs = job_named("longer");
  by_epochs["spec"]["training"]["epochs"] = 2;
  ASSERT_TRUE(taken(create(by_epochs, true)));
  Json by_steps = job_named("more-steps");
  by_steps["spec"]["training"].erase("epochs");
  by_steps["spec"]["training"]["steps"] = 200;
  ASSERT_TRUE(taken(create(by_steps, true)));
  const Json none = nullptr;
  struct {
    const char* name;
    const char* condition;
    Json training;
    bool taken;
  } const cases[] = {
      {"longer", "Succeeded", {{"epochs", 3}}, true},
      {"more-steps", "Succeeded", {{"steps", 300}}, true},
      {"longer", "Failed", {{"epochs", 3}}, false},
      {"longer", "SuccessCriteriaMet", {{"epochs", 3}}, false},
      {"longer", "Succeeded", {{"epochs", 1}}, false},
      {"longer", "Succeeded", {{"epochs", 3}, {"batchSize", 48}}, false},
      {"longer", "Succeeded", {{"epochs", 3}, {"optimizer", {{"beta1", 0.5}}}}, false},
      {"longer", "Succeeded", {{"epochs", none}, {"steps", 100000}}, false},
      {"more-steps", "Succeeded", {{"steps", none}, {"epochs", 100}}, false},
      {"longer", "Succeeded", none, false},
  };
  for (const auto& one : cases) {
    set_condition(one.name, one.condition, true);
    const Answer answer = send("PATCH", std::string(kJobs) + "/" + one.name + "?dryRun=All",
                               {{"spec", {{"training", one.training}}}}, kMergePatch);
    EXPECT_EQ(taken(answer), one.taken) << one.condition << " " << one.training << "\n"
                                        << answer.body.dump(1);
    const bool said = says(answer, "spec.training", "expected no change of training");
    EXPECT_EQ(said, !one.taken) << answer.body.dump(1);
  }
}

TEST_F(TrainingJobs, ThatAreElasticAreScaledWithinTheirLimitsWhileTheyRun) {
  Document document = Document::load(MUSTER_SOURCE_DIR "/examples/mnist-multiworker.yaml");
  document.set("metadata.name", "elastic");
  document.set("spec.elastic", "{minReplicas: 1, maxReplicas: 4}");
  const Answer created = create(document.value(), true);
  ASSERT_TRUE(taken(created)) << created.body.dump(1);
  EXPECT_EQ(created.body["spec"]["elastic"]["batch"], "global");
  set_suspended("elastic", false);
  const auto scale = [](const std::string& replicas) {
    return server().kubectl({"scale", "trainingjob/elastic", "--replicas=" + replicas});
  };
  for (const char* replicas : {"4", "1", "2"}) {
    const auto scaled = scale(replicas);
    EXPECT_EQ(scaled.code, 0) << scaled.text;
  }
  for (const char* replicas : {"0", "5"}) {
    const auto refused = scale(replicas);
    EXPECT_NE(refused.code, 0);
    EXPECT_THAT(refused.text, HasSubstr("workers, between minReplicas and maxReplicas"));
  }
  const Json none = {{"elastic", nullptr}};
  const Json wider = {{"elastic", {{"maxReplicas", 9}}}};
  const Json per_replica = {{"elastic", {{"batch", "perReplica"}}}};
  for (const Json& patch : {none, wider, per_replica}) {
    const Answer answer = change("elastic", {{"spec", patch}});
    EXPECT_EQ(answer.status, 422) << patch.dump();
    EXPECT_TRUE(says(answer, "spec", "expected no change of storage")) << answer.body.dump(1);
  }
  set_suspended("elastic", true);
  EXPECT_TRUE(taken(change("elastic", {{"spec", wider}})));
}

TEST_F(TrainingJobs, KeepWhoManagesThem) {
  ASSERT_TRUE(taken(create(job_named("managed"), true)));
  set_suspended("managed", true);
  const Answer answer = change("managed", {{"spec", {{"managedBy", "kueue.x-k8s.io/multikueue"}}}});
  EXPECT_EQ(answer.status, 422);
  EXPECT_TRUE(says(answer, "spec.managedBy", "expected no change")) << answer.body.dump(1);
}

api::JobStatus status_of_a_run() {
  using namespace std::chrono_literals;
  const api::Time time = api::Time(1795262400250ms);
  api::JobStatus status;
  status.observed_generation = 1;
  status.conditions = {{"Accepted", true, "Valid", "the job can be run", time},
                       {"Running", true, "AllReplicasReady", "all 4 replicas are ready", time},
                       {"Restarting", false, "AllReplicasReady", "", time}};
  status.start_time = time;
  status.replica_statuses[api::Role::worker] = {2, 3, 0, 0, 1};
  api::ReplicaRecord record;
  record.index = 1;
  record.attempt = 1;
  record.restarts = 1;
  record.exit_code = 137;
  record.not_before = time;
  status.records = {api::ReplicaRecord{}, record};
  status.counted_uids = {"6b2c1a54-5a0d-4a4e-9c8e-0a3f7f1f2b11"};
  status.restarts = 1;
  status.progress = api::progress_of(
      {{"step", 1200}, {"totalSteps", 3750}, {"loss", "0.0421"}, {"goodput", 1.0}});
  status.results = api::results_of(Json::parse(R"({
      "step": 3750, "epochs": 2, "trainLoss": 0.0421, "trainAccuracy": 1.0, "exportedStep": 3750,
      "validation": {"loss": 2.0, "accuracy": 0.9751, "balancedAccuracy": 0.9725}, "test": {"error": "no such file"},
      "weightsDigest": "4be3", "checkpoint": "/muster/c", "model": "/muster/m",
      "trainSeconds": 12.5, "examplesPerSecond": 8000, "secondsPerBatch": 0.001,
      "stoppedEarly": false, "reached": {"metric": "trainLoss", "value": 0.0421, "step": 3750,
      "epoch": 2}, "best": {"metric": "validationLoss", "value": 2, "step": 3750,
      "epoch": 2, "checkpoint": "/muster/c"}})"));
  return status;
}

TEST_F(TrainingJobs, HaveAStatusApartThatComesBackWithoutLoss) {
  Json job = job_named("status");
  job["status"] = {{"restarts", 7}};
  const Answer created = create(job, true);
  ASSERT_TRUE(taken(created)) << created.body.dump(1);
  EXPECT_FALSE(created.body.contains("status"));

  Json seen = created.body;
  seen["spec"]["suspend"] = true;
  seen["status"] = api::to_json(status_of_a_run());
  const Answer written =
      send("PUT", std::string(kJobs) + "/status/status?fieldValidation=Strict", seen);
  ASSERT_TRUE(taken(written)) << written.body.dump(1);
  EXPECT_EQ(written.body["spec"]["suspend"], false);
  EXPECT_EQ(sorted(written.body["status"]), sorted(seen["status"]));
  EXPECT_EQ(api::to_job_status(written.body["status"]), status_of_a_run());
}

Json job_of_own_image(const std::string& name) {
  Json job = job_named(name);
  job["spec"].erase("training");
  for (auto& [role, spec] : job["spec"]["replicaSpecs"].items()) {
    spec["template"]["spec"]["containers"] = Json::array({{{"name", "a"}, {"image", "b"}}});
  }
  return job;
}

TEST_F(TrainingJobs, ScaleTheirWorkers) {
  ASSERT_TRUE(taken(create(job_of_own_image("scaled"), true)));
  Json status = api::to_json(status_of_a_run());
  status["labelSelector"] = "a=b";
  ASSERT_TRUE(taken(change("scaled", {{"status", status}}, "/status")));
  const auto scaled = server().kubectl({"scale", "tj/scaled", "--replicas=5"});
  EXPECT_EQ(scaled.code, 0) << scaled.text;
  const Answer scale = send("GET", std::string(kJobs) + "/scaled/scale");
  EXPECT_EQ(scale.body["spec"]["replicas"], 5);
  EXPECT_EQ(scale.body["status"]["replicas"], 3);
  EXPECT_EQ(scale.body["status"]["selector"], "a=b");
  const Answer job = send("GET", std::string(kJobs) + "/scaled");
  EXPECT_EQ(job.body["spec"]["replicaSpecs"]["worker"]["replicas"], 5);
  EXPECT_NE(server().kubectl({"scale", "tj/scaled", "--replicas=1001"}).code, 0);
}

TEST_F(TrainingJobs, WithTrainingScaleOnlyWhileTheyAreSuspended) {
  ASSERT_TRUE(taken(create(job_named("sized"), true)));
  const auto scale = [] { return server().kubectl({"scale", "tj/sized", "--replicas=5"}); };
  const auto refused = scale();
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.text, HasSubstr("suspend it first"));
  set_suspended("sized", true);
  const auto scaled = scale();
  EXPECT_EQ(scaled.code, 0) << scaled.text;
}

TEST_F(TrainingJobs, AreListedWithStateStepsLossAndReplicas) {
  ASSERT_TRUE(taken(create(job_named("listed"), true)));
  ASSERT_TRUE(taken(change("listed", {{"status", api::to_json(status_of_a_run())}}, "/status")));
  const auto short_list = server().kubectl({"get", "tj", "listed"});
  EXPECT_THAT(short_list.text,
              testing::ContainsRegex("NAME +STATE +STEPS +LOSS +READY +RESTARTS +AGE"));
  EXPECT_THAT(short_list.text,
              testing::ContainsRegex("listed +Running +1200/3750 +0.0421 +2/3 +1 +[0-9]"));
  const auto wide = server().kubectl({"get", "tj", "listed", "-o", "wide"});
  EXPECT_THAT(wide.text, HasSubstr("AllReplicasReady"));
  EXPECT_THAT(wide.text, HasSubstr("VALIDATION ACCURACY"));
  EXPECT_THAT(wide.text, testing::ContainsRegex("BEST BY +BEST .*\n.*validationLoss +2 "));
  for (const char* result : {"0.9751", "12.5", "/muster/c", "/muster/m", "4be3"}) {
    EXPECT_THAT(wide.text, HasSubstr(result));
  }
  EXPECT_THAT(server().kubectl({"get", "all"}).text, HasSubstr("trainingjob.muster.dev/listed"));
}

void expect_described(const Json& schema, const std::string& path, int& fields) {
  for (const auto& [name, property] : member(schema, "properties").items()) {
    const std::string child = child_path(path, name);
    ++fields;
    EXPECT_TRUE(property.contains("description")) << child;
    // What stands in `metadata` is Kubernetes' own, in a schema of its own.
    expect_described(property, child, fields);
    expect_described(member(property, "items"), child + "[]", fields);
  }
}

TEST_F(TrainingJobs, AreExplainedFieldByField) {
  const Answer answer = send("GET", "/openapi/v3/apis/muster.dev/v1alpha1");
  const Json& schemas = answer.body["components"]["schemas"];
  int fields = 0;
  expect_described(schemas.at("dev.muster.v1alpha1.TrainingJob"), "", fields);
  EXPECT_GT(fields, 300);
  const auto explained = server().kubectl({"explain", "trainingjob.spec.training.batchSize"});
  EXPECT_THAT(explained.text, HasSubstr("Samples of one step of one replica."));
  EXPECT_THAT(explained.text, Not(HasSubstr("<no description>")));
}

}  // namespace

}  // namespace muster::integration
