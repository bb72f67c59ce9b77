#include "operator/cmd/cluster/cluster_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "common/error.h"
#include "common/exit_code.h"
#include "operator/api/rules.h"
#include "operator/api/validate.h"
#include "operator/cmd/job/scale.h"
#include "tests/unit/common/temporary_folder.h"
#include "tests/unit/operator/cmd/cluster/cluster_answers.h"

namespace muster::cmd {
namespace {

using kube::FakeTransport;
using kube::Method;
using kube::Request;
using kube::Response;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Json finished(const char* reason, const Json& records) {
  return {{"conditions",
           {condition("FailureTarget", reason, "worker-0 ended badly"), condition("Failed", reason),
            condition("Finished", reason)}},
          {"records", records}};
}

// Where the answers of a job that is looked at again and again come from: the last one stays.
FakeTransport::OnSend one_after_another(std::vector<Response> answers) {
  return [answers, next = size_t{0}](const Request&) mutable {
    const size_t now = std::min(next++, answers.size() - 1);
    return answers[now];
  };
}

class ClusterCommandsTest : public ::testing::Test {
 protected:
  static int wait(std::vector<Response> answers, std::chrono::seconds timeout = {}) {
    FakeTransport transport(one_after_another(std::move(answers)));
    WaitOptions options;
    options.timeout = timeout;
    options.every = std::chrono::milliseconds(1);
    return wait_until_finished(access(transport), {{"lab", "mnist"}}, options, stdout);
  }

  std::filesystem::path manifest(const Json& value) {
    const std::filesystem::path file = folder_.path() / "job.yaml";
    std::ofstream(file) << value.dump();
    return file;
  }

  test::TemporaryFolder folder_;
};

TEST_F(ClusterCommandsTest, waits_through_times_without_an_answer) {
  Response lost;
  lost.error = "connection refused";
  testing::internal::CaptureStdout();
  EXPECT_EQ(
      wait({ok(job()), lost, lost,
            ok(job({{"conditions", Json::array({condition("SuccessCriteriaMet")})}})),
            ok(job({{"conditions",
                     {condition("Succeeded", "Done", "all is well"), condition("Finished")}}}))}),
      kSuccess);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, HasSubstr("mnist: Pending"));
  EXPECT_THAT(text, HasSubstr("connection refused; trying again"));
  EXPECT_THAT(text, HasSubstr("mnist: Completing (R): m"));
  EXPECT_THAT(text, HasSubstr("mnist: Succeeded (Done): all is well"));
}

TEST_F(ClusterCommandsTest, ends_with_the_code_of_the_replica_that_failed) {
  const Json records = {{{"role", "evaluator"}, {"index", 0}, {"failed", true}, {"exitCode", 65}},
                        {{"role", "worker"}, {"index", 0}, {"failed", true}, {"exitCode", 90}}};
  EXPECT_EQ(wait({ok(job(finished("PermanentExitCode", records)))}), 90);
  EXPECT_EQ(wait({ok(job(finished("DeadlineExceeded", records)))}), kDeadline);
  EXPECT_EQ(wait({ok(job(finished("BackoffLimitExceeded", Json::array())))}), kInternal);
}

TEST_F(ClusterCommandsTest, waits_no_longer_for_a_job_that_is_refused_or_gone_or_late) {
  Json refused = condition("Accepted", "InvalidTemplate", "no such volume");
  refused["status"] = "False";
  EXPECT_EQ(wait({ok(job()),
                  ok(job({{"observedGeneration", 1}, {"conditions", Json::array({refused})}}))}),
            kBadInput);
  EXPECT_THROW(wait({ok(job()), kube::refusal(404, "NotFound", "gone")}), Invalid);
  EXPECT_THROW(wait({kube::refusal(403, "Forbidden", "no")}), Unavailable);
  EXPECT_THROW(wait({ok(job())}, std::chrono::seconds(1)), Unavailable);
}

// Answers for two jobs: "mnist", which runs for `looks` of them, and "b".
struct TwoJobs {
  FakeTransport::OnSend answers(std::function<Response(int look)> of_b) {
    return [this, of_b](const Request& request) {
      if (request.path.ends_with("/b")) return of_b(looks_of_b++);
      const Json over = {{"conditions", {condition("Succeeded"), condition("Finished")}}};
      return ok(looks++ < 50 ? job() : job(over));
    };
  }
  int looks = 0, looks_of_b = 0;
};

TEST_F(ClusterCommandsTest, waits_on_for_a_job_that_has_succeeded_and_was_given_more_to_train) {
  const auto succeeded = [](int epochs) {
    Json value = job({{"conditions", {condition("Succeeded"), condition("Finished")}},
                      {"trainedTo", {{"epochs", epochs}}}});
    value["spec"]["training"] = {{"epochs", 3}};
    return ok(value);
  };
  testing::internal::CaptureStdout();
  EXPECT_EQ(wait({succeeded(2), ok(job()), succeeded(3)}), kSuccess);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::ContainsRegex("Pending[^$]*Succeeded"));
}

TEST_F(ClusterCommandsTest, waits_for_all_jobs_at_once_and_tells_a_failure_as_it_happens) {
  const Json records = {{{"role", "worker"}, {"index", 0}, {"failed", true}, {"exitCode", 90}}};
  TwoJobs two;
  int looks_at_failure = 0;
  FakeTransport transport(two.answers([&](int look) {
    if (look == 3) looks_at_failure = two.looks;
    return ok(look < 3 ? job() : job(finished("PermanentExitCode", records)));
  }));
  WaitOptions options;
  options.every = std::chrono::milliseconds(1);
  testing::internal::CaptureStdout();
  EXPECT_EQ(
      wait_until_finished(access(transport), {{"lab", "mnist"}, {"lab", "b"}}, options, stdout),
      90);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_LT(looks_at_failure, 10) << "seen long before the other job has ended";
  EXPECT_EQ(two.looks_of_b, 4) << "and not looked at any more";
  const size_t failed = text.find("warning: b: Failed (PermanentExitCode)");
  const size_t succeeded = text.find("mnist: Succeeded");
  EXPECT_LT(failed, succeeded) << text;
  EXPECT_NE(succeeded, std::string::npos) << text;
}

TEST_F(ClusterCommandsTest, waits_for_the_others_where_one_job_is_deleted) {
  TwoJobs two;
  FakeTransport transport(two.answers(
      [](int look) { return look < 1 ? ok(job()) : kube::refusal(404, "NotFound", "gone"); }));
  WaitOptions options;
  options.every = std::chrono::milliseconds(1);
  testing::internal::CaptureStdout();
  EXPECT_THROW(
      wait_until_finished(access(transport), {{"lab", "mnist"}, {"lab", "b"}}, options, stdout),
      Invalid);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("warning: expected trainingjob.muster.dev/b to finish, found that it "
                              "was deleted"),
                    HasSubstr("mnist: Succeeded")));
}

TEST_F(ClusterCommandsTest, shows_what_a_training_has_come_to_once_it_has_finished) {
  Json ended = job({{"conditions", {condition("Succeeded"), condition("Finished")}},
                    {"results", {{"step", 1564}, {"test", {{"accuracy", 0.9751}}}}}});
  ended["spec"]["training"] = {{"data", {{"test", Json::object()}}}};
  const auto answer = [&](const Request& request) {
    return ok(request.path == kPods ? Json{{"items", Json::array()}} : ended);
  };
  const auto wait_for = [&] {
    FakeTransport transport(answer);
    testing::internal::CaptureStdout();
    const int code = wait_until_finished(access(transport), {{"lab", "mnist"}}, {}, stdout);
    return std::pair(code, testing::internal::GetCapturedStdout());
  };
  auto [code, text] = wait_for();
  EXPECT_EQ(code, kSuccess);
  EXPECT_THAT(text, HasSubstr("mnist: Succeeded\n  steps                1,564\n"
                              "  test accuracy        0.9751\n"));
  ended["status"]["results"].erase("test");
  std::tie(code, text) = wait_for();
  EXPECT_EQ(code, kNotEvaluated);
  EXPECT_THAT(text, HasSubstr("test data            not evaluated: "));
}

TEST_F(ClusterCommandsTest, says_once_that_no_operator_looks_at_a_job_it_waits_for) {
  Json fresh = job();
  fresh["metadata"]["generation"] = 1;
  Json over = job(
      {{"observedGeneration", 1}, {"conditions", {condition("Succeeded"), condition("Finished")}}});
  FakeTransport transport(one_after_another({ok(fresh), ok(fresh), ok(fresh), ok(over)}));
  WaitOptions options;
  options.every = options.operator_takes = std::chrono::milliseconds(1);
  testing::internal::CaptureStdout();
  wait_until_finished(access(transport), {{"lab", "mnist"}}, options, stdout);
  const std::string text = testing::internal::GetCapturedStdout();
  const size_t told =
      text.find("warning: mnist: no operator has looked at this job: is one running?");
  EXPECT_NE(told, std::string::npos) << text;
  EXPECT_EQ(text.find("no operator", told + 20), std::string::npos) << text;
}

TEST_F(ClusterCommandsTest, applies_what_the_user_wrote_and_no_defaults) {
  const Response none = kube::refusal(404, "NotFound", "no such job");
  FakeTransport transport(
      [&](const Request& request) { return request.method == Method::patch ? ok(job()) : none; });
  Json written = job();
  written.erase("status");
  written["metadata"] = {{"name", "mnist"}};
  SubmitOptions options;
  options.files = {manifest(written)};
  testing::internal::CaptureStdout();
  EXPECT_EQ(submit_jobs(access(transport), checked_manifests(options), "", options), kSuccess);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "trainingjob.muster.dev/mnist created\n");
  const Request patch = transport.requests().at(1);
  EXPECT_EQ(patch.path, kJob);
  EXPECT_EQ(patch.content_type, "application/apply-patch+yaml");
  EXPECT_EQ(kube::query(patch, "fieldManager"), "muster");
  EXPECT_EQ(kube::query(patch, "fieldValidation"), "Strict");
  EXPECT_EQ(kube::query(patch, "force"), "");
  written["metadata"]["namespace"] = "lab";
  EXPECT_EQ(Json::parse(patch.body), written);
}

TEST_F(ClusterCommandsTest, applies_all_objects_of_a_file_in_their_order) {
  const Response none = kube::refusal(404, "NotFound", "no such object");
  FakeTransport transport([&](const Request& request) {
    if (request.path == "/api/v1")
      return ok({{"resources",
                  {{{"name", "persistentvolumeclaims/status"},
                    {"kind", "PersistentVolumeClaim"},
                    {"namespaced", true}},
                   {{"name", "persistentvolumeclaims"},
                    {"kind", "PersistentVolumeClaim"},
                    {"namespaced", true}}}}});
    return request.method == Method::patch ? ok(job()) : none;
  });
  Json written = job();
  written.erase("status");
  const Json claim = {
      {"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"metadata", {{"name", "data"}}}};
  SubmitOptions options;
  options.files = {manifest({{"apiVersion", "v1"}, {"kind", "List"}, {"items", {claim, written}}})};
  testing::internal::CaptureStdout();
  EXPECT_EQ(submit_jobs(access(transport), checked_manifests(options), "", options), kSuccess);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "persistentvolumeclaim/data created\ntrainingjob.muster.dev/mnist created\n");
  const Request patch = transport.requests().at(2);
  EXPECT_EQ(patch.path, "/api/v1/namespaces/lab/persistentvolumeclaims/data");
  EXPECT_EQ(Json::parse(patch.body)["metadata"]["namespace"], "lab");
}

TEST_F(ClusterCommandsTest, refuses_a_malformed_manifest_and_another_namespace_unasked) {
  FakeTransport transport([](const Request&) { return Response(); });
  Json wrong = job();
  wrong["spec"]["replicaSpecs"]["worker"]["replicas"] = "two";
  SubmitOptions options;
  options.files = {manifest(wrong)};
  EXPECT_THROW(checked_manifests(options), Invalid);
  EXPECT_THROW(submit_jobs(access(transport), {job()}, "other", options), Invalid);
  EXPECT_TRUE(transport.requests().empty());
}

TEST_F(ClusterCommandsTest, names_the_way_out_of_a_conflict) {
  FakeTransport transport([](const Request& request) {
    return request.method == Method::patch
               ? kube::refusal(409, "Conflict", "conflict with kubectl: .spec.suspend")
               : ok(job());
  });
  try {
    submit_jobs(access(transport), {job()}, "", {});
    ADD_FAILURE() << "expected a refusal";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("conflict with kubectl: .spec.suspend"));
    EXPECT_THAT(error.what(), HasSubstr("--force-conflicts"));
  }
}

TEST_F(ClusterCommandsTest, names_the_field_and_the_way_where_an_edit_is_refused) {
  Json before = job();
  before["spec"]["training"] = {{"batchSize", 32}, {"epochs", 2}};
  Json after = job();
  after["spec"]["training"] = {{"batchSize", 64}, {"epochs", 2}};
  Json status = {{"kind", "Status"}, {"code", 422}, {"reason", "Invalid"}, {"message", "invalid"}};
  for (const api::Rule& rule : api::rules()) {
    if (rule.found != nullptr || !rule.path.empty()) continue;
    const Json cause = {{"message", "Forbidden: expected " + rule.expected}};
    status["details"]["causes"] = Json::array({cause});
    FakeTransport transport([&](const Request& request) {
      return request.method == Method::patch ? kube::answer(422, status.dump()) : ok(before);
    });
    try {
      submit_jobs(access(transport), {after}, "", {});
      ADD_FAILURE() << "expected a refusal";
    } catch (const Invalid& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("spec.training.batchSize (was 32, is 64)"),
                        HasSubstr("`muster suspend mnist -n lab`"),
                        HasSubstr("`muster resume mnist -n lab`"), Not(HasSubstr("/apis/"))));
    }
  }
}

TEST_F(ClusterCommandsTest, applies_lists_as_the_api_server_keeps_them) {
  Document document = Document::load(MUSTER_SOURCE_DIR "/examples/custom-network.yaml");
  SubmitOptions options;
  options.files = {MUSTER_SOURCE_DIR "/examples/custom-network.yaml"};
  options.sets = {"spec.storage.volume={hostPath: {path: /jobs}}"};
  const Json submitted = checked_manifests(options).at(0);
  document.set("spec.storage.volume", "{hostPath: {path: /jobs}}");
  const Json written = document.value();
  EXPECT_TRUE(api::validate_for_cluster(document).empty());
  const auto layers = [](const Json& of) { return of["spec"]["training"]["model"]["layers"]; };
  EXPECT_NE(layers(written), layers(document.value())) << "there are defaults within";
  EXPECT_EQ(layers(submitted), layers(document.value()));
  Json rest = submitted;
  rest["spec"]["training"]["model"]["layers"] = layers(written);
  EXPECT_EQ(rest, written) << "and nothing else";
}

TEST_F(ClusterCommandsTest, explains_in_one_line_what_an_api_server_refuses) {
  FakeTransport transport([](const Request&) { return Response(); });
  const ClusterAccess cluster = access(transport);
  const auto explained = [&](const Response& response) {
    return cluster.explain(kube::status_of(response), "GET /x: a\nb");
  };
  EXPECT_THAT(explained(kube::answer(404, "404 page not found")),
              HasSubstr("is the operator's CRD installed?"));
  EXPECT_THAT(explained(kube::refusal(403, "Forbidden", "user x cannot get")),
              HasSubstr("found 403: user x cannot get"));
  EXPECT_THAT(explained(kube::refusal(401, "Unauthorized", "no")), HasSubstr("401"));
  EXPECT_EQ(explained(kube::refusal(422, "Invalid", "no")), "https://api:6443: GET /x: a b");
  Response lost;
  lost.error = "connection refused";
  EXPECT_EQ(explained(lost),
            "https://api:6443: expected an answer of the API server, found none: connection "
            "refused");
}

TEST_F(ClusterCommandsTest, suspends_only_the_job_it_has_looked_at) {
  FakeTransport transport([](const Request&) { return ok(job()); });
  testing::internal::CaptureStdout();
  suspend_job(access(transport), "mnist", true);
  suspend_job(access(transport), "mnist", false);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "trainingjob.muster.dev/mnist suspended\n"
            "trainingjob.muster.dev/mnist unchanged: it is not suspended already\n");
  ASSERT_EQ(transport.requests().size(), 3U);
  EXPECT_EQ(Json::parse(transport.requests()[1].body),
            Json::parse(R"({"spec": {"suspend": true}, "metadata": {"uid": "u1"}})"));
}

TEST_F(ClusterCommandsTest, says_that_of_a_finished_job_nothing_is_to_suspend_and_changes_nothing) {
  struct Case {
    Json status;
    const char* state;
  };
  const Case cases[] = {
      {{{"conditions", {condition("Succeeded"), condition("Finished")}}}, "Succeeded"},
      {finished("PermanentExitCode", Json::array()), "Failed"},
  };
  for (const Case& over : cases) {
    FakeTransport transport([&](const Request&) { return ok(job(over.status)); });
    testing::internal::CaptureStdout();
    EXPECT_EQ(suspend_job(access(transport), "mnist", true), kSuccess);
    EXPECT_EQ(testing::internal::GetCapturedStdout(),
              fmt::format("trainingjob.muster.dev/mnist unchanged: it has finished ({}), and there "
                          "is nothing to suspend\n",
                          over.state));
    EXPECT_EQ(transport.requests().size(), 1U);
  }
}

TEST_F(ClusterCommandsTest, shows_how_old_a_status_is) {
  Json seen = job({{"conditions", {condition("Running")}}});
  seen["metadata"]["managedFields"] = {{{"manager", "muster-operator"},
                                        {"subresource", "status"},
                                        {"time", "2026-01-02T03:04:05Z"}}};
  FakeTransport transport([&](const Request& request) {
    return ok(request.path == kPods ? Json{{"items", Json::array()}} : seen);
  });
  testing::internal::CaptureStdout();
  EXPECT_EQ(show_cluster_status(access(transport), "mnist", "text"), kSuccess);
  EXPECT_THAT(
      testing::internal::GetCapturedStdout(),
      ::testing::ContainsRegex("as of      .* ago, when the operator wrote the status last\n"));
}

Json elastic_job(int workers, const Json& status = Json::object()) {
  Json value = job(status);
  value["spec"]["strategy"] = "collective";
  value["spec"]["training"] = {{"epochs", 1}};
  value["spec"]["elastic"] = {{"minReplicas", 2}, {"maxReplicas", 4}};
  value["spec"]["replicaSpecs"]["worker"] = {{"replicas", workers}};
  return value;
}

TEST_F(ClusterCommandsTest, scales_only_the_job_it_has_looked_at) {
  FakeTransport transport([](const Request&) { return ok(elastic_job(2)); });
  testing::internal::CaptureStdout();
  scale_cluster_job(access(transport), "mnist", 4);
  scale_cluster_job(access(transport), "mnist", 2);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "trainingjob.muster.dev/mnist scaled to 4 workers\n"
            "trainingjob.muster.dev/mnist unchanged: it has 2 workers already\n");
  ASSERT_EQ(transport.requests().size(), 3U);
  EXPECT_EQ(Json::parse(transport.requests()[1].body), Json::parse(R"({"spec": {"replicaSpecs":
      {"worker": {"replicas": 4}}}, "metadata": {"uid": "u1"}})"));
}

TEST_F(ClusterCommandsTest, says_what_scaling_means_for_ones_own_programs) {
  Json dynamic = job();
  dynamic["spec"]["enableDynamicWorker"] = true;
  Json suspended = job();
  suspended["spec"]["suspend"] = true;
  std::string output;
  for (const Json& own : {job(), dynamic, suspended}) {
    FakeTransport transport([&](const Request&) { return ok(own); });
    testing::internal::CaptureStdout();
    scale_cluster_job(access(transport), "mnist", 2);
    output += testing::internal::GetCapturedStdout();
    EXPECT_EQ(transport.requests().size(), 2U);
  }
  EXPECT_EQ(output,
            "trainingjob.muster.dev/mnist scaled to 2 workers; all replicas restart, to have the "
            "same TF_CONFIG\n"
            "trainingjob.muster.dev/mnist scaled to 2 workers\n"
            "trainingjob.muster.dev/mnist scaled to 2 workers\n");
  EXPECT_EQ(scaled_text(api::to_training_job(job()), 1), "scaled to 1 worker")
      << "it has as many: `muster run` may be asked twice for the same number";
}

TEST_F(ClusterCommandsTest, says_why_a_job_cannot_be_scaled_and_changes_nothing) {
  struct Case {
    Json job;
    int workers;
    const char* why;
  };
  const Json over = {{"conditions", {condition("SuccessCriteriaMet"), condition("Succeeded")}}};
  Json trained = elastic_job(2);
  trained["spec"].erase("elastic");
  Json chief_alone = job();
  chief_alone["spec"]["replicaSpecs"] = {{"chief", job()["spec"]["replicaSpecs"]["worker"]}};
  const Case cases[] = {
      {trained, 2, "job mnist: expected spec.elastic"},
      {chief_alone, 2, "job mnist: expected spec.replicaSpecs.worker, found none"},
      {elastic_job(2), 5, "--replicas: expected from 2 to 4, minReplicas and maxReplicas of job"},
      {elastic_job(2), 1, "found 1"},
      {elastic_job(2, over), 3, "expected one that trains, found one that is Succeeded"},
  };
  for (const Case& refused : cases) {
    FakeTransport transport([&](const Request&) { return ok(refused.job); });
    try {
      scale_cluster_job(access(transport), "mnist", refused.workers);
      ADD_FAILURE() << refused.why;
    } catch (const Invalid& error) {
      EXPECT_THAT(error.what(), HasSubstr(refused.why));
    }
    EXPECT_EQ(transport.requests().size(), 1U);
  }
}

Json trained_job(const Json& status = Json::object()) {
  Json value = elastic_job(2, status);
  value["spec"]["storage"] = {{"volume", {{"persistentVolumeClaim", {{"claimName", "shared"}}}}}};
  return value;
}

Json with_request_met(const std::string& request, int step) {
  const std::string folder = "/muster/lab-mnist/checkpoints/ckpt-" + std::to_string(step) + "-g1";
  return {
      {"progress",
       {{"requestedCheckpoint", {{"request", request}, {"step", step}, {"checkpoint", folder}}}}}};
}

// A job that meets each request at the third look after it, unless another program has made a
// request of its own by then, which is met in its place.
class ClusterCheckpointTest : public ClusterCommandsTest {
 protected:
  ClusterCheckpointTest() : transport_([this](const Request& request) { return send(request); }) {
    options_.every = std::chrono::milliseconds(1);
  }

  Response send(const Request& request) {
    if (request.method == Method::patch) {
      requested_ = Json::parse(request.body)["metadata"]["annotations"]["muster.dev/checkpoint"];
    } else if (!requested_.empty() && ++looks_ == 3) {
      if (!other_.empty()) requested_ = other_;
      job_["status"].update(with_request_met(requested_, 1200));
    }
    Json seen = job_;
    if (!requested_.empty()) seen["metadata"]["annotations"]["muster.dev/checkpoint"] = requested_;
    return ok(seen);
  }

  std::string output() {
    testing::internal::CaptureStdout();
    EXPECT_EQ(checkpoint_cluster_job(access(transport_), "mnist", options_), kSuccess);
    return testing::internal::GetCapturedStdout();
  }

  Json job_ = trained_job(with_request_met("an earlier one", 7));
  std::string requested_, other_;
  int looks_ = 0;
  CheckpointOptions options_;
  FakeTransport transport_;
};

TEST_F(ClusterCheckpointTest, waits_until_its_request_is_met_and_says_where) {
  EXPECT_EQ(output(),
            "trainingjob.muster.dev/mnist: checkpoint of step 1200 in "
            "/muster/lab-mnist/checkpoints/ckpt-1200-g1\n");
  EXPECT_THAT(requested_, HasSubstr("muster checkpoint, 20"));
  EXPECT_EQ(looks_, 3);
}

TEST_F(ClusterCheckpointTest, takes_the_checkpoint_of_a_later_request_for_its_own) {
  other_ = "by hand";
  EXPECT_THAT(output(), HasSubstr("checkpoint of step 1200 in"));
}

TEST_F(ClusterCheckpointTest, only_asks_if_nobody_is_to_wait) {
  options_.wait = false;
  EXPECT_EQ(output(), "trainingjob.muster.dev/mnist: asked for a checkpoint\n");
  EXPECT_EQ(looks_, 0);
}

TEST_F(ClusterCheckpointTest, says_why_a_job_takes_none_and_asks_for_none) {
  const Json over = {{"conditions", {condition("SuccessCriteriaMet"), condition("Succeeded")}}};
  Json nowhere = trained_job();
  nowhere["spec"].erase("storage");
  const std::pair<Json, const char*> cases[] = {
      {job(), "job mnist: expected one with spec.training, found one that runs a program of its"},
      {trained_job(over), "job mnist: expected one that trains, found one that is Succeeded"},
      {trained_job({{"conditions", {condition("Suspended", "Suspended")}}}),
       "job mnist: expected one that trains, found one that is Suspended"},
      {nowhere, "job mnist: expected spec.storage.volume, where checkpoints outlive"},
  };
  for (const auto& [job, why] : cases) {
    job_ = job;
    try {
      checkpoint_cluster_job(access(transport_), "mnist", options_);
      ADD_FAILURE() << why;
    } catch (const Invalid& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
  EXPECT_EQ(requested_, "");
}

TEST_F(ClusterCheckpointTest, says_that_the_job_has_ended_or_takes_too_long) {
  looks_ = 10;  // nothing is met
  options_.timeout = std::chrono::seconds(1);
  try {
    checkpoint_cluster_job(access(transport_), "mnist", options_);
    ADD_FAILURE();
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("published within 1 s, found none yet"));
  }
  FakeTransport ends([this](const Request& request) {
    const bool asked = request.method == Method::patch;
    const Response response = ok(job_);
    if (asked) job_["status"]["conditions"] = {condition("Succeeded"), condition("Finished")};
    return response;
  });
  try {
    checkpoint_cluster_job(access(ends), "mnist", options_);
    ADD_FAILURE();
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("until the checkpoint is published, found it Succeeded"));
  }
}

TEST(IsLocalJob, takes_paths_and_directories_that_hold_a_job) {
  EXPECT_TRUE(is_local_job("runs/mnist"));
  EXPECT_TRUE(is_local_job("./mnist"));
  EXPECT_TRUE(is_local_job(".."));
  EXPECT_FALSE(is_local_job("mnist"));
  const test::TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  std::filesystem::create_directory("mnist");
  EXPECT_FALSE(is_local_job("mnist"));
  std::ofstream("mnist/job.json") << "{}";
  EXPECT_TRUE(is_local_job("mnist"));
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace muster::cmd
