#include "operator/cmd/operator/operator_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>

#include "common/documents/json.h"
#include "common/job/termination_message.h"
#include "common/system/file.h"
#include "operator/kube/http/http_transport.h"
#include "tests/unit/common/documented_metrics.h"
#include "tests/unit/operator/cmd/http_api.h"
#include "tests/unit/operator/kube/chart_rights.h"

namespace muster::cmd {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// First in main, as programs do.
class InitializedTransport : public testing::Environment {
  void SetUp() override { kube::initialize_transport(); }
};
const testing::Environment* const kEnvironment =
    testing::AddGlobalTestEnvironment(new InitializedTransport);

constexpr const char* kLease = "muster";  // as the chart calls it
constexpr int kTurns = 2;  // calls that an operator makes at a time, but for its lease

// For what takes as long as it takes.
bool eventually(const std::function<bool()>& is_so) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

kube::Config config(const std::string& url) {
  kube::Config config;
  config.server = url;
  return config;
}

kube::HttpTransport::Settings at_a_time(int calls) {
  kube::HttpTransport::Settings settings;
  settings.in_flight = calls;
  return settings;
}

OperatorOptions options(const std::string& identity) {
  OperatorOptions options;
  options.threads = 4;
  options.lease.name_space = "system";
  options.lease.name = kLease;
  options.lease.identity = identity;
  options.lease.every = 20ms;
  return options;
}

// Lets operators do what the chart does.
class Api : public HttpApi {
 public:
  explicit Api(Intercept intercept = {}) : HttpApi(std::move(intercept)) {
    with([](auto& server) { server.permits = kube::chart_rights({"muster", "muster-leader"}); });
  }
};

// muster-operator in this process, with connections of its own, running.
class Running {
 public:
  Running(const HttpApi& api, OperatorOptions options)
      : credentials_(config(api.url())),
        transport_(credentials_, registry_, at_a_time(kTurns)),
        lease_transport_(credentials_, registry_, at_a_time(1)),
        process_({transport_, lease_transport_}, registry_, std::move(options)),
        thread_([this](const std::stop_token& stop) { result_.set_value(process_.run(stop)); }) {}

  // As SIGTERM does; or waits until it ends by itself. Returns what run() does.
  bool stop() {
    thread_.request_stop();
    return wait();
  }
  bool wait() { return result_.get_future().get(); }
  bool ready() const { return process_.ready(); }
  std::string metrics() { return process_.metrics_text(); }
  bool shows(const std::string& line) { return metrics().find(line + "\n") != std::string::npos; }

 private:
  kube::Credentials credentials_;
  prometheus::Registry registry_;
  kube::HttpTransport transport_, lease_transport_;
  OperatorProcess process_;
  std::promise<bool> result_;
  std::jthread thread_;
};

void run_pods(HttpApi& api) {
  api.with([](auto& server) {
    for (const Json& pod : server.objects("pods")) {
      if (pod["status"]["phase"] == "Pending") server.run_pod(pod["metadata"]["name"]);
    }
  });
}

std::string holder(HttpApi& api) {
  return api.with([](auto& server) {
    if (!server.has("leases", kLease)) return std::string();
    return string_or(server.object("leases", kLease)["spec"], "holderIdentity", "");
  });
}

TEST(OperatorProcess, RunsAJobAndShowsItInMetrics) {
  Api api;
  Running muster(api, options("a"));
  api.submit("mnist");
  ASSERT_TRUE(eventually([&] { return api.count("POST pods") == 4; }));
  EXPECT_TRUE(muster.ready());
  run_pods(api);
  ASSERT_TRUE(eventually(
      [&] { return muster.shows("muster_jobs{namespace=\"lab\",state=\"Running\"} 1"); }));
  EXPECT_TRUE(muster.shows("muster_operator_leads 1"));

  const std::string worker = api.pods("worker").at(0);
  api.with([&](auto& server) { server.end_pod(worker, 1); });
  EXPECT_TRUE(eventually([&] {
    return muster.shows("muster_restarts_total{reason=\"ReplicaFailed\",role=\"worker\"} 1");
  }));
  EXPECT_TRUE(eventually([&] { return api.count("POST pods") == 5; }));

  EXPECT_THAT(
      muster.metrics(),
      AllOf(HasSubstr("workqueue_depth{name=\"trainingjob\"} 0\n"),
            HasSubstr("controller_runtime_reconcile_total{controller=\"trainingjob\",result="),
            HasSubstr("rest_client_requests_total{code=\"201\",host=\"127.0.0.1:"),
            HasSubstr("muster_job_first_step_seconds_count 0\n")));
  EXPECT_FALSE(muster.shows("workqueue_adds_total{name=\"trainingjob\"} 0"));
  EXPECT_TRUE(muster.stop());
}

TEST(OperatorProcess, AsksOnlyInTheNamespacesItIsGiven) {
  std::mutex mutex;
  std::set<std::string> lists;
  Api api([&](const HttpApi::Message& message) -> std::optional<HttpApi::Reply> {
    const std::string path = message.target.substr(0, message.target.find('?'));
    const std::lock_guard lock(mutex);
    if (message.method == "GET" &&
        !path.starts_with("/apis/coordination.k8s.io/v1/namespaces/system/") &&
        path != "/api/v1/namespaces/system/configmaps/muster-usage")
      lists.insert(path);
    return std::nullopt;
  });
  OperatorOptions both = options("a");
  both.namespaces = {"lab", "team"};
  Running muster(api, both);
  api.submit("mnist");
  ASSERT_TRUE(eventually([&] { return api.count("POST pods") == 4; }));
  EXPECT_TRUE(muster.ready());
  EXPECT_TRUE(muster.stop());
  EXPECT_THAT(lists, ElementsAre("/api/v1/namespaces/lab/pods", "/api/v1/namespaces/lab/services",
                                 "/api/v1/namespaces/team/pods", "/api/v1/namespaces/team/services",
                                 "/apis/muster.dev/v1alpha1/namespaces/lab/trainingjobs",
                                 "/apis/muster.dev/v1alpha1/namespaces/team/trainingjobs"));
}

TEST(OperatorProcess, ItsMetricsAreWhatTheReferenceSays) {
  Api api;
  api.with([](auto& server) {
    server.put({{"apiVersion", "apiextensions.k8s.io/v1"},
                {"kind", "CustomResourceDefinition"},
                {"metadata",
                 {{"name", "trainingjobs.muster.dev"},
                  {"annotations", {{"muster.dev/version", "0.0.1"}}}}}});
  });
  Running muster(api, options("a"));
  api.submit("mnist");
  ASSERT_TRUE(eventually([&] { return api.count("POST pods") == 4; }));
  const std::string job = "{namespace=\"lab\",trainingjob=\"mnist\",";
  ASSERT_TRUE(eventually(
      [&] { return muster.shows("muster_job_replicas_wanted" + job + "role=\"worker\"} 1"); }));
  ASSERT_TRUE(eventually([&] { return muster.shows("muster_crd_info{version=\"0.0.1\"} 1"); }));
  EXPECT_TRUE(muster.shows("muster_job_state" + job + "state=\"Pending\"} 1"));
  EXPECT_TRUE(muster.shows("muster_job_restarts" + job + "role=\"worker\"} 0"));
  EXPECT_TRUE(muster.shows("muster_jobs{namespace=\"lab\",state=\"Failed\"} 0"));
  const MetricShapes served = served_metrics(muster.metrics());
  const MetricShapes documented =
      documented_metrics(read_file(MUSTER_SOURCE_DIR "/docs/reference/metrics.md"));
  for (const auto& [name, shape] : served) {
    ASSERT_TRUE(documented.contains(name)) << name << " is not in the page";
    EXPECT_EQ(shape, documented.at(name)) << name;
  }
  // What other jobs have.
  const std::set<std::string> others = {
      "muster_job_step",        "muster_job_end",       "muster_job_restarts_by_reason",
      "muster_job_eta_seconds", "muster_tfjob_refused", "muster_job_deadline_timestamp_seconds"};
  for (const auto& [name, shape] : documented) {
    const bool is_trainers = name.starts_with("muster_trainer_") ||
                             name.starts_with("training_operator_") || others.contains(name);
    EXPECT_TRUE(is_trainers || served.contains(name)) << name;
  }
}

TEST(OperatorProcess, MeasuresTheTimeToTheFirstStep) {
  Api api;
  Running muster(api, options("a"));
  api.submit("mnist");
  ASSERT_TRUE(eventually([&] { return api.pods("chief").size() == 1; }));
  const std::string chief = api.pods("chief").at(0);
  const std::string last_words =
      TerminationMessage{0, "done", {{"step", 10}, {"stepsHere", 10}, {"totalSteps", 10}}}.text();
  const Json status = {
      {"phase", "Succeeded"},
      {"containerStatuses",
       {{{"name", "tensorflow"},
         {"state", {{"terminated", {{"exitCode", 0}, {"message", last_words}}}}}}}}};
  api.with([&](auto& server) { server.set_status(chief, status); });
  EXPECT_TRUE(eventually([&] { return muster.shows("muster_job_first_step_seconds_count 1"); }));
  EXPECT_TRUE(eventually(
      [&] { return muster.shows("muster_jobs{namespace=\"lab\",state=\"Completing\"} 1"); }));
}

TEST(OperatorProcess, IsNotReadyBeforeItHasSeenAll) {
  std::atomic<bool> answers = false;
  Api api([&](const HttpApi::Message& message) -> std::optional<HttpApi::Reply> {
    if (answers || message.target.find("/services") == std::string::npos) return std::nullopt;
    return HttpApi::Reply{503, "{}", {}};
  });
  Running muster(api, options("a"));
  api.submit("mnist");
  ASSERT_TRUE(eventually([&] {
    return muster.metrics().find("rest_client_requests_total{code=\"503\"") != std::string::npos;
  }));
  EXPECT_FALSE(muster.ready());
  EXPECT_EQ(api.count("POST pods"), 0) << "it acts on a view that is not whole";
  answers = true;
  EXPECT_TRUE(eventually([&] { return muster.ready(); }));
  EXPECT_TRUE(eventually([&] { return api.count("POST pods") == 4; }));
}

TEST(OperatorProcess, NothingWaitsInTheQueueOfOneThatDoesNotLead) {
  Api api;
  Running first(api, options("a"));
  ASSERT_TRUE(eventually([&] { return holder(api) == "a"; }));
  Running second(api, options("b"));
  for (int i = 0; i < 3; ++i) api.submit("job-" + std::to_string(i));
  ASSERT_TRUE(eventually([&] { return api.count("POST pods") == 12; }));
  run_pods(api);
  ASSERT_TRUE(eventually(
      [&] { return first.shows("muster_jobs{namespace=\"lab\",state=\"Running\"} 3"); }));
  EXPECT_THAT(second.metrics(), Not(HasSubstr("namespace=\"lab\"")))
      << "sums would count each job twice";
  EXPECT_TRUE(second.shows("workqueue_depth{name=\"trainingjob\"} 0"));
  EXPECT_TRUE(second.shows("workqueue_adds_total{name=\"trainingjob\"} 0"));
  const std::string worker = api.pods("worker").at(0);
  EXPECT_TRUE(first.stop());
  api.with([&](auto& server) { server.end_pod(worker, 1); });
  EXPECT_TRUE(eventually([&] { return api.count("POST pods") == 13; }));
  EXPECT_TRUE(second.shows("workqueue_depth{name=\"trainingjob\"} 0"));
}

TEST(OperatorProcess, LooksAtAllThatIsThereWhenItBeginsToLead) {
  Api api;
  {
    Running first(api, options("a"));
    for (const char* name : {"kept", "deleted"}) api.submit(name);
    ASSERT_TRUE(eventually([&] { return api.count("POST pods") == 8; }));
    EXPECT_TRUE(first.stop());
  }
  run_pods(api);
  const auto workers = api.pods("worker");
  api.with([&](auto& server) {
    for (const std::string& worker : workers) server.end_pod(worker, 1);
    server.remove("trainingjobs", "deleted");
  });
  Running second(api, options("b"));
  EXPECT_TRUE(eventually([&] { return api.count("POST pods") == 9; })) << "of the one that is left";
  EXPECT_TRUE(eventually([&] {
    return api.with([](auto& server) {
      return std::ranges::none_of(server.objects("pods"), [](const Json& pod) {
        return pod["metadata"]["labels"]["muster.dev/job"] == "deleted" &&
               pod["status"]["phase"] == "Failed";
      });
    });
  })) << "the pods of a job that has gone are let go";
}

plan::UsageTotals usage(HttpApi& api) {
  return api.with([](auto& server) {
    if (!server.has("configmaps", "muster-usage")) return plan::UsageTotals();
    return plan::UsageTotals::of(server.object("configmaps", "muster-usage")["data"]);
  });
}

TEST(OperatorProcess, KeepsWhatJobsHaveUsedOverATakeover) {
  Api api;
  {
    Running first(api, options("a"));
    ASSERT_TRUE(eventually([&] { return usage(api).until.has_value(); }));
    api.submit("mnist");
    ASSERT_TRUE(eventually([&] { return api.count("POST pods") == 4; }));
    EXPECT_TRUE(first.stop());
  }
  const plan::UsageTotals before = usage(api);
  ASSERT_EQ(before.months().size(), 1u);
  const plan::Usage lab = before.months().begin()->second.at("lab");
  EXPECT_GT(lab.spent.total(), 0);
  EXPECT_TRUE(lab.ended.empty());
  Running second(api, options("b"));
  EXPECT_TRUE(eventually([&] { return usage(api).write != before.write; }));
  api.with([](auto& server) { server.remove("trainingjobs", "mnist"); });
  EXPECT_TRUE(eventually([&] { return second.shows("workqueue_depth{name=\"trainingjob\"} 0"); }));
  EXPECT_TRUE(second.stop());
  const plan::Usage after = usage(api).months().begin()->second.at("lab");
  EXPECT_GT(after.spent.total(), lab.spent.total());
  EXPECT_EQ(after.gpu_seconds, 0);
}

TEST(OperatorProcess, LeadsWithoutAnElection) {
  Api api;
  OperatorOptions alone = options("a");
  alone.elects_leader = false;
  Running muster(api, alone);
  EXPECT_TRUE(eventually([&] { return muster.shows("muster_operator_leads 1"); }));
  EXPECT_EQ(holder(api), "");
  api.submit("mnist");
  EXPECT_TRUE(eventually([&] { return api.count("POST pods") == 4; }));
}

TEST(OperatorProcess, GivesUpItsLeaseWhenItIsStopped) {
  Api api;
  Running first(api, options("a"));
  ASSERT_TRUE(eventually([&] { return holder(api) == "a"; }));
  Running second(api, options("b"));
  ASSERT_TRUE(eventually([&] { return second.ready(); }));
  EXPECT_TRUE(second.shows("muster_operator_leads 0"));
  EXPECT_TRUE(first.stop());
  EXPECT_TRUE(eventually([&] { return holder(api) == "b"; }));
  EXPECT_TRUE(second.stop());
  EXPECT_EQ(holder(api), "");
}

TEST(OperatorProcess, EndsWhenItHasLostItsLease) {
  Api api;
  OperatorOptions soon = options("a");
  soon.lease.renew_within = 500ms;
  Running muster(api, soon);
  ASSERT_TRUE(eventually([&] { return muster.shows("muster_operator_leads 1"); }));
  api.with([](auto& server) {
    Json lease = server.object("leases", kLease);
    lease["spec"]["holderIdentity"] = "b";
    server.put(lease);
  });
  EXPECT_FALSE(muster.wait());
  EXPECT_TRUE(muster.shows("muster_operator_leads 0"));
  EXPECT_EQ(holder(api), "b");
}

// Bulk calls that the server refuses for now, or holds up until all turns are taken, are in
// nobody's way.
TEST(OperatorProcess, RenewsItsLeaseWhateverBecomesOfOtherCalls) {
  enum Bulk { kAnswered, kRefused, kHeldUp };
  std::mutex mutex;
  std::condition_variable changed;
  Bulk bulk = kAnswered;
  int hits = 0;
  Api api([&](const HttpApi::Message& message) -> std::optional<HttpApi::Reply> {
    if (message.target.find("/leases") != std::string::npos) return std::nullopt;
    std::unique_lock lock(mutex);
    ++hits;
    if (bulk == kRefused) return HttpApi::Reply{429, "{}", {{"Retry-After", "1"}}};
    changed.wait(lock, [&] { return bulk != kHeldUp; });
    return std::nullopt;
  });
  const auto set = [&](Bulk what) {
    const std::lock_guard lock(mutex);
    bulk = what;
    hits = 0;
    changed.notify_all();
  };
  const auto have_hit = [&](int times) {
    const std::lock_guard lock(mutex);
    return hits >= times;
  };
  Running muster(api, options("a"));
  ASSERT_TRUE(eventually([&] { return muster.shows("muster_operator_leads 1"); }));
  int jobs = 0;
  for (const Bulk trouble : {kRefused, kHeldUp}) {
    set(trouble);
    for (int i = 0; i < 8; ++i) api.submit("job-" + std::to_string(jobs++));
    EXPECT_TRUE(eventually([&] { return have_hit(trouble == kHeldUp ? kTurns : 1); }));
    const int before = api.count("PUT leases");
    EXPECT_TRUE(eventually([&] { return api.count("PUT leases") >= before + 10; })) << trouble;
    set(kAnswered);
    EXPECT_TRUE(eventually([&] { return api.count("POST pods") == 4 * jobs; }));
  }
  EXPECT_TRUE(muster.stop());
}

}  // namespace
}  // namespace muster::cmd
