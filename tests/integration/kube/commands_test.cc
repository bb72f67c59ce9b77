#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/documents/document.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/kube/api_server.h"

namespace muster::integration {

namespace {

using ::testing::HasSubstr;

// `muster submit`, status and so on, on an API server without an operator: what that would write
// into a status, the test writes.
class CommandsTest : public testing::Test {
 protected:
  using Output = ApiServer::Output;

  void install_definition() {
    kubectl({"apply", "--server-side", "-f", MUSTER_SOURCE_DIR "/charts/muster/files/crd.yaml"});
    // `kubectl wait` fails where there are no conditions yet.
    ASSERT_TRUE(eventually([&] { return server_.kubectl({"get", "trainingjobs"}).code == 0; }));
  }

  std::string kubectl(const std::vector<std::string>& arguments) {
    const Output output = server_.kubectl(arguments);
    EXPECT_EQ(output.code, 0) << output.text;
    return output.text;
  }

  std::unique_ptr<Process> start(std::vector<std::string> arguments,
                                 const std::filesystem::path& output) {
    arguments.insert(arguments.begin(), MUSTER_BINARY_DIR "/bin/muster");
    return std::make_unique<Process>(
        arguments, std::map<std::string, std::string>{{"KUBECONFIG", server_.kubeconfig()}}, output,
        Process::Limits{});
  }

  Output muster(const std::vector<std::string>& arguments) {
    const test::TemporaryFolder folder;
    const auto process = start(arguments, folder.path() / "output");
    const int code = process->wait().value_or(-1);
    return {code, read_file(folder.path() / "output")};
  }

  // One worker with an image of the user's own.
  std::string manifest(int replicas = 1) {
    const Json container = {{"name", "tensorflow"}, {"image", "tf"}};
    Json worker = {{"replicas", replicas}};
    worker["template"]["spec"]["containers"] = Json::array({container});
    Json job = {{"apiVersion", "muster.dev/v1alpha1"}, {"kind", "TrainingJob"}};
    job["metadata"]["name"] = "mnist";
    job["spec"]["replicaSpecs"]["worker"] = worker;
    const std::filesystem::path file = folder_.path() / "job.yaml";
    write_file_atomically(file, job.dump());
    return file;
  }

  void write_status(const Json& status) {
    kubectl({"patch", "tj", "mnist", "--subresource=status", "--type=merge", "-p",
             Json{{"status", status}}.dump()});
  }

  static Json condition(const char* type, const char* reason) {
    return {{"type", type},
            {"status", "True"},
            {"reason", reason},
            {"message", "worker-0 ended with exit code 90"},
            {"lastTransitionTime", "2026-01-02T03:04:05Z"}};
  }

  ApiServer server_;
  test::TemporaryFolder folder_;
};

TEST_F(CommandsTest, TakeAJobFromItsSubmissionToItsEnd) {
  install_definition();
  const Output empty = muster({"list"});
  EXPECT_EQ(empty.code, kSuccess);
  EXPECT_THAT(empty.text, HasSubstr("no TrainingJobs in the namespace default"));

  EXPECT_EQ(muster({"submit", manifest()}).text, "trainingjob.muster.dev/mnist created\n");
  EXPECT_EQ(muster({"submit", manifest()}).text, "trainingjob.muster.dev/mnist unchanged\n");
  EXPECT_EQ(muster({"submit", manifest(2)}).text, "trainingjob.muster.dev/mnist configured\n");
  EXPECT_EQ(kubectl({"get", "tj", "mnist", "-o", "jsonpath={.spec.replicaSpecs.worker.replicas}"}),
            "2");

  write_status({{"progress", {{"step", 1200}, {"totalSteps", 5000}, {"loss", "0.25"}}},
                {"conditions", Json::array({condition("Running", "AllReplicasReady")})},
                {"replicaStatuses", {{"worker", {{"ready", 2}, {"active", 2}}}}}});
  const Output status = muster({"status", "mnist"});
  EXPECT_EQ(status.code, kSuccess);
  EXPECT_THAT(status.text, HasSubstr("mnist: Running\n"));
  EXPECT_THAT(status.text, HasSubstr("step 1,200/5,000 (24%)  loss 0.25"));
  EXPECT_THAT(status.text, HasSubstr("worker-1  no pod"));
  const Json value = Json::parse(muster({"status", "mnist", "-o", "json"}).text);
  EXPECT_EQ(value["replicas"].size(), 2U);
  EXPECT_THAT(muster({"status", "mnist", "-o", "yaml"}).text, HasSubstr("state: Running\n"));
  EXPECT_THAT(muster({"list", "-A"}).text,
              HasSubstr("default    mnist  Running  2/2    1200/5000"));

  EXPECT_EQ(muster({"suspend", "mnist"}).text, "trainingjob.muster.dev/mnist suspended\n");
  EXPECT_EQ(kubectl({"get", "tj", "mnist", "-o", "jsonpath={.spec.suspend}"}), "true");
  EXPECT_EQ(muster({"resume", "mnist"}).text, "trainingjob.muster.dev/mnist resumed\n");
  EXPECT_EQ(kubectl({"get", "tj", "mnist", "-o", "jsonpath={.spec.suspend}"}), "false");

  EXPECT_EQ(muster({"delete", "mnist", "--wait", "--timeout", "60"}).text,
            "trainingjob.muster.dev/mnist deleted\n");
  const Output gone = muster({"status", "mnist"});
  EXPECT_EQ(gone.code, kBadInput);
  EXPECT_THAT(gone.text, HasSubstr("expected a TrainingJob \"mnist\" in the namespace default"));
}

// layers are a list, which a server-side apply compares as a whole.
TEST_F(CommandsTest, SubmitWhatKubectlHasAppliedAlready) {
  install_definition();
  Document document = Document::load(MUSTER_SOURCE_DIR "/examples/custom-network.yaml");
  document.set("spec.storage.volume", "{hostPath: {path: /jobs}}");
  const std::filesystem::path file = folder_.path() / "network.yaml";
  write_file_atomically(file, document.value().dump());
  const std::string name = document.value()["metadata"]["name"];
  kubectl({"apply", "-f", file});
  const Output submitted = muster({"submit", file});
  EXPECT_EQ(submitted.code, kSuccess) << submitted.text;
  EXPECT_EQ(muster({"submit", file}).text, "trainingjob.muster.dev/" + name + " unchanged\n");
  kubectl({"apply", "-f", file});
  EXPECT_EQ(kubectl({"get", "tj", name, "-o", "jsonpath={.metadata.generation}"}), "1");

  const Output refused =
      muster({"submit", file, "--force-conflicts", "--set", "spec.training.batchSize=77"});
  EXPECT_EQ(refused.code, kBadInput);
  EXPECT_THAT(refused.text, HasSubstr(", is 77)"));
  EXPECT_THAT(refused.text, HasSubstr("spec.training.batchSize (was "));
  EXPECT_THAT(refused.text, HasSubstr("`muster suspend " + name));
  EXPECT_THAT(refused.text, testing::Not(HasSubstr("/apis/")));
}

TEST_F(CommandsTest, WaitUntilTheJobHasFailedAndEndWithItsCode) {
  install_definition();
  const std::filesystem::path output = folder_.path() / "output";
  const auto waiting = start({"submit", manifest(), "--wait"}, output);
  ASSERT_TRUE(
      eventually([&] { return read_file(output).find("mnist: Pending") != std::string::npos; }));
  server_.kill(ApiServer::kServer);
  server_.start(ApiServer::kServer);
  server_.await_ready();
  const Json record = {{"role", "worker"}, {"index", 0}, {"failed", true}, {"exitCode", 90}};
  write_status({{"records", Json::array({record})},
                {"conditions", Json::array({condition("FailureTarget", "PermanentExitCode"),
                                            condition("Failed", "PermanentExitCode"),
                                            condition("Finished", "PermanentExitCode")})}});
  EXPECT_EQ(waiting->wait(), kDiverged);
  EXPECT_THAT(read_file(output),
              HasSubstr("warning: mnist: Failed (PermanentExitCode): worker-0 ended with exit code "
                        "90"));
}

TEST_F(CommandsTest, SayInOneLineWhyThereIsNothingToShow) {
  const Output unknown = muster({"list"});
  EXPECT_EQ(unknown.code, kUnavailable);
  EXPECT_THAT(unknown.text, HasSubstr("is the operator's CRD installed?"));
  install_definition();

  const Output logs = muster({"logs", "mnist"});
  EXPECT_EQ(logs.code, kBadInput);
  EXPECT_EQ(muster({"submit", manifest()}).code, kSuccess);
  const Output none = muster({"logs", "mnist"});
  EXPECT_EQ(none.code, kUnavailable);
  EXPECT_THAT(none.text, HasSubstr("expected a replica that has started, found none (Pending)"));
  EXPECT_THAT(muster({"logs", "mnist", "ps"}).text, HasSubstr("expected one of: worker-0"));

  const Output absent = muster({"list", "--kubeconfig", folder_.path() / "none"});
  EXPECT_EQ(absent.code, kBadInput);
  EXPECT_THAT(absent.text, HasSubstr("none: No such file"));
  server_.kill(ApiServer::kServer);
  const Output down = muster({"list"});
  EXPECT_EQ(down.code, kUnavailable);
  EXPECT_THAT(down.text, HasSubstr("expected an answer of the API server, found none"));
  EXPECT_EQ(std::ranges::count(down.text, '\n'), 1);
}

}  // namespace

}  // namespace muster::integration
