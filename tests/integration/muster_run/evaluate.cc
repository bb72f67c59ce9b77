#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// examples/mnist-mlp.yaml, one epoch, with `sets` on it.
std::unique_ptr<Muster> run_mnist(ScriptJob& job, const std::vector<std::string>& sets) {
  std::vector<std::string> arguments = {"run",         MUSTER_SOURCE_DIR "/examples/mnist-mlp.yaml",
                                        "--directory", "run",
                                        "--set",       "spec.training.epochs=1"};
  for (const std::string& set : sets) {
    arguments.push_back("--set");
    arguments.push_back(set);
  }
  return job.muster(arguments);
}

// Interrupts a run once it has a checkpoint. It would have trained for long.
void run_interrupted(ScriptJob& job) {
  auto run =
      run_mnist(job, {"spec.training.checkpoint.everySteps=20", "spec.training.epochs=1000"});
  await_file(job.directory() / "checkpoints" / "checkpoint");
  run->signal(SIGINT);
  EXPECT_EQ(run->wait(), 130) << run->output();
}

// An evaluator with a command of its own, of which `muster run` cannot know what it will read.
const std::string kOwnCommand =
    "spec.replicaSpecs.evaluator.template={spec: {containers: [{name: trainer, command: "
    "[" MUSTER_BINARY_DIR "/bin/muster-trainer]}]}}";

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

// In muster-trainer's place, a script.
void set_trainer(ScriptJob& job, const std::string& text) {
  const fs::path path = job.folder() / "trainer";
  std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
  fs::permissions(path, fs::perms::owner_all);
  job.set("MUSTER_TRAINER", path);
}

TEST(MusterRunEvaluates, what_it_can_and_says_at_once_and_at_the_end_what_it_cannot) {
  ScriptJob job("");
  const std::vector<std::string> sets = {"spec.training.data.train.take=6400", kOwnCommand,
                                         "spec.training.data.test.idx.images=no/such/file"};
  auto run = run_mnist(job, sets);
  EXPECT_EQ(run->wait(), kNotEvaluated) << run->output();
  EXPECT_THAT(run->output(),
              AllOf(HasSubstr("warning: evaluator-0: cannot be evaluated with all its data"),
                    HasSubstr("validation accuracy"), HasSubstr("validation balanced accuracy"),
                    ContainsRegex("test data +not evaluated: "), HasSubstr("no/such/file")));
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_EQ(summary["state"], "Succeeded");
  EXPECT_GT(summary["validationAccuracy"], 0.5);
  EXPECT_TRUE(summary["testAccuracy"].is_null());
  EXPECT_THAT(summary["notEvaluated"]["test"].get<std::string>(), HasSubstr("no/such/file"));
  EXPECT_FALSE(summary["notEvaluated"].contains("validation"));
  EXPECT_EQ(run_mnist(job, sets)->wait(), kNotEvaluated);
}

// Blobs that overlap, of which no run gets all right.
constexpr const char* kBlobs = R"(apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: blobs}
spec:
  training:
    model: {layers: [{dense: {units: 16, activation: relu}}, {dense: {units: 6}}]}
    data:
      train: {syntheticClasses: {samples: 330, shape: [2], classes: 6}}
      validation: {syntheticClasses: {samples: 130, shape: [2], classes: 6, seed: 2}}
    epochs: 40
    optimizer: {learningRate: 0.05}
    evaluation: {}
    earlyStopping: {metric: validationBalancedAccuracy, patience: 3, restoreBest: true}
  replicaSpecs: {chief: {}, worker: {replicas: 1}}
  strategy: collective
)";

TEST(MusterRunEvaluates, in_the_training_and_ends_it_by_a_metric_that_counts_by_class) {
  ScriptJob job(kBlobs);
  auto run = job.muster({"run", "job.yaml", "--directory", "run"});
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), AllOf(HasSubstr("the best validationBalancedAccuracy, "),
                                   ContainsRegex("validation balanced accuracy +0\\.[0-9]{4}\n")));
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_EQ(summary["stoppedEarly"], true);
  const Json best = summary["best"];
  EXPECT_EQ(best["metric"], "validationBalancedAccuracy");
  EXPECT_EQ(summary["epochs"], best["epoch"].get<int>() + 3);
  EXPECT_EQ(summary["validationBalancedAccuracy"], best["value"]) << "the best is exported";
  const auto value_after = [&](int epoch) {
    const int step = epoch * best["step"].get<int>() / best["epoch"].get<int>();
    const fs::path file = job.directory() / "evaluations" / (std::to_string(step) + ".json");
    return Json::parse(read_text(file))["validation"]["balancedAccuracy"].get<double>();
  };
  for (int epoch = 1; epoch <= summary["epochs"].get<int>(); ++epoch) {
    if (epoch < best["epoch"]) {
      EXPECT_LT(value_after(epoch), best["value"]);
    } else {
      EXPECT_LE(value_after(epoch), best["value"]);
    }
  }
}

TEST(MusterRunEvaluates, at_its_end_a_training_that_had_ended_early_and_would_not_go_on) {
  ScriptJob job(kBlobs);
  const auto run_to = [&](const char* epochs) {
    return job.muster(
        {"run", "job.yaml", "--directory", "run", "--continue", "--set",
         std::string("spec.training.epochs=") + epochs, "--set", "spec.replicaSpecs.evaluator={}",
         "--set",
         "spec.training.data.test={syntheticClasses: {samples: 90, shape: [2], classes: 6}}"});
  };
  auto first = run_to("40");
  EXPECT_EQ(first->wait(), kSuccess) << first->output();
  const Json before = Json::parse(read_text(job.directory() / "summary.json"));
  ASSERT_EQ(before["stoppedEarly"], true);
  for (const char* epochs : {"50", "2"}) {
    auto refused = run_to(epochs);
    EXPECT_EQ(refused->wait(), kBadInput) << refused->output();
    EXPECT_THAT(refused->output(),
                AllOf(HasSubstr("run: --continue: expected something left to train, found that "
                                "early stopping has ended the training after epoch "),
                      HasSubstr("raise spec.training.earlyStopping.patience"),
                      Not(HasSubstr("trains on"))));
  }
  // A job that is created again, as on a cluster, is evaluated again.
  fs::remove(job.directory() / "job.json");
  auto second = run_to("40");
  EXPECT_EQ(second->wait(), kSuccess) << second->output();
  const Json after = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_EQ(after["step"], before["step"]);
  EXPECT_TRUE(after["testAccuracy"].is_number());
  EXPECT_EQ(after["testAccuracy"], before["testAccuracy"]);
}

TEST(MusterRunEvaluates, by_no_metric_that_the_loss_does_not_have) {
  ScriptJob job(kBlobs);
  auto run = job.muster({"run", "job.yaml", "--directory", "run", "--set",
                         "spec.training.earlyStopping.metric=validationAveragePrecison"});
  EXPECT_EQ(run->wait(), kBadInput);
  EXPECT_THAT(run->output(),
              AllOf(HasSubstr("spec.training.earlyStopping.metric: did you mean "
                              "validationAveragePrecision? Expected one of validationLoss, "
                              "validationAccuracy, validationBalancedAccuracy, "),
                    HasSubstr(", found \"validationAveragePrecison\"")));
  EXPECT_FALSE(fs::exists(job.directory()));
}

TEST(MusterRunEvaluates, nothing_where_all_data_are_bad_and_names_them_for_each) {
  ScriptJob job("");
  auto run = run_mnist(job, {"spec.training.data.train.take=6400", kOwnCommand,
                             "spec.training.data.validation.idx.images=no/such/file",
                             "spec.training.data.test.idx.images=no/such/file"});
  EXPECT_EQ(run->wait(), kNotEvaluated) << run->output();
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  for (const char* data : {"validation", "test"}) {
    EXPECT_THAT(summary["notEvaluated"][data].get<std::string>(),
                AllOf(HasSubstr("evaluator-0 ended with exit code 65"), HasSubstr("no/such/file")));
  }
}

// A file of the examples' MNIST with a bit flipped in the middle.
std::string flip_a_bit(const ScriptJob& job, const std::string& name) {
  std::string bytes = read_text(fs::path(MUSTER_SOURCE_DIR) / "examples/data/mnist" / name);
  bytes[bytes.size() / 2] ^= 1;
  const fs::path path = job.folder() / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

TEST(MusterRunData, that_are_missing_are_all_named_and_nothing_is_started) {
  ScriptJob job("");
  auto run = run_mnist(job, {"spec.training.data.train.idx.images=no/train",
                             "spec.training.data.validation.idx.labels=no/validation",
                             "spec.training.data.test.idx.images=no/test"});
  EXPECT_EQ(run->wait(), kBadInput);
  EXPECT_THAT(run->output(),
              AllOf(HasSubstr("spec.training.data.train.idx.images: "),
                    HasSubstr("no/train: expected IDX images, found no such file"),
                    HasSubstr("no/validation: expected IDX labels, found no such file"),
                    HasSubstr("no/test: expected IDX images, found no such file")));
  EXPECT_FALSE(fs::exists(job.directory()));
}

TEST(MusterRunData, of_fewer_files_than_there_are_to_deal_out_are_refused_and_nothing_is_started) {
  ScriptJob job("");
  auto run = run_mnist(job, {"spec.training.data.train.shard=file"});
  EXPECT_EQ(run->wait(), kBadInput);
  EXPECT_THAT(run->output(), HasSubstr("spec.training.data.train.shard: file: expected at least 2 "
                                       "files, one for each device of each member, found 1"));
  EXPECT_FALSE(fs::exists(job.directory()));
}

TEST(MusterRunData, of_an_evaluation_are_asked_for_without_an_evaluator_too) {
  ScriptJob job("");
  auto run = run_mnist(job, {"spec.training.data.test.idx.images=no/such/file",
                             "spec.replicaSpecs.evaluator.replicas=0"});
  EXPECT_EQ(run->wait(), kBadInput) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("no/such/file"));
  EXPECT_FALSE(fs::exists(job.directory()));
}

TEST(MusterRunData, of_an_evaluator_that_are_damaged_are_refused_before_anything_is_started) {
  ScriptJob job("");
  const std::string damaged = flip_a_bit(job, "t10k-images-idx3-ubyte.gz");
  auto run = run_mnist(job, {"spec.training.data.test.idx.images=" + damaged});
  EXPECT_EQ(run->wait(), kBadInput) << run->output();
  EXPECT_THAT(run->output(), AllOf(HasSubstr("reading the test data to their end: " + damaged),
                                   HasSubstr("spec.training.data.test.idx: " + damaged),
                                   HasSubstr("CRC mismatch")));
  EXPECT_FALSE(fs::exists(job.directory()));
}

TEST(MusterRunData, to_train_on_that_are_damaged_end_the_job_before_its_first_step) {
  ScriptJob job("");
  const std::string damaged = flip_a_bit(job, "train-images-idx3-ubyte.gz");
  auto run = run_mnist(job, {"spec.training.data.train.idx.images=" + damaged});
  EXPECT_EQ(run->wait(), kBadInput) << run->output();
  EXPECT_THAT(run->output(),
              AllOf(HasSubstr(damaged + ": damaged gzip data at byte"), HasSubstr("CRC mismatch")));
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_EQ(summary["step"], 0);
  EXPECT_EQ(summary["failure"]["reason"], "PermanentExitCode");
  EXPECT_EQ(summary["failure"]["exitCode"], kBadInput);
  EXPECT_THAT(summary["failure"]["message"].get<std::string>(), HasSubstr("CRC mismatch"));
}

// A job of one chief, of which a script is the trainer, and the data that it is to train on.
class MovedData : public testing::Test {
 protected:
  MovedData() : job_(kManifest) {
    const fs::path mnist = fs::path(MUSTER_SOURCE_DIR) / "examples/data/mnist";
    fs::copy_file(mnist / "t10k-images-idx3-ubyte.gz", job_.folder() / "images");
    fs::copy_file(mnist / "t10k-labels-idx1-ubyte.gz", job_.folder() / "labels");
  }

  void move_data() { fs::remove(job_.folder() / "images"); }
  std::unique_ptr<Muster> run(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"run", "job.yaml", "--directory", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return job_.muster(arguments);
  }

  static constexpr const char* kManifest = R"(apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: moved}
spec:
  training:
    model: {name: mnist-mlp}
    data: {train: {idx: {images: images, labels: labels}}}
    epochs: 1
  replicaSpecs: {chief: {}}
)";
  ScriptJob job_;
};

TEST_F(MovedData, are_not_asked_for_by_a_job_that_has_finished) {
  set_trainer(job_, "exit 0");
  EXPECT_EQ(run()->wait(), kSuccess);
  move_data();
  auto again = run();
  EXPECT_EQ(again->wait(), kSuccess) << again->output();
  EXPECT_THAT(again->output(), AllOf(HasSubstr("moved: Succeeded"), HasSubstr("finished already")));
}

TEST_F(MovedData, are_asked_for_by_a_job_that_failed_when_it_is_retried) {
  set_trainer(job_, "exit 90");
  EXPECT_EQ(run()->wait(), kDiverged);
  move_data();
  auto again = run();
  EXPECT_EQ(again->wait(), kDiverged) << again->output();
  EXPECT_THAT(again->output(), AllOf(HasSubstr("moved: Failed"), HasSubstr(" --retry")));
  auto retried = run({"--retry"});
  EXPECT_EQ(retried->wait(), kBadInput) << retried->output();
  EXPECT_THAT(retried->output(), HasSubstr("images: expected IDX images, found no such file"));
  EXPECT_EQ(run()->wait(), kDiverged) << "the retry was refused before it touched anything";
}

TEST_F(MovedData, are_not_asked_for_by_a_job_that_is_suspended_until_it_goes_on) {
  set_trainer(job_, "exit 0");
  move_data();
  auto suspended = run({"--set", "spec.suspend=true"});
  EXPECT_EQ(suspended->wait(), kSuccess) << suspended->output();
  EXPECT_THAT(suspended->output(), HasSubstr("The manifest says suspend: nothing runs"));
  auto resumed = run();
  EXPECT_EQ(resumed->wait(), kBadInput) << resumed->output();
  EXPECT_THAT(resumed->output(), HasSubstr("found no such file"));
}

TEST_F(MovedData, are_not_asked_for_in_a_directory_that_another_run_has) {
  set_trainer(job_, "echo here > $EVENTS; read go < $GATE");
  auto first = run();
  job_.next_event();
  move_data();
  auto other = run();
  EXPECT_EQ(other->wait(), kUnavailable) << other->output();
  EXPECT_THAT(other->output(), HasSubstr("process " + std::to_string(first->pid())));
  job_.open_gate();
  EXPECT_EQ(first->wait(), kSuccess) << first->output();
}

// With a command of its own, the chief is the first to look.
TEST(MusterRunEvaluates, by_the_chief_where_there_is_no_evaluator_which_looks_first) {
  ScriptJob job("");
  auto run = run_mnist(
      job,
      {"spec.training.data.test.idx.images=no/such/file", "spec.replicaSpecs.evaluator.replicas=0",
       "spec.replicaSpecs.chief.template={spec: {containers: [{name: trainer, command: "
       "[" MUSTER_BINARY_DIR "/bin/muster-trainer]}]}}"});
  EXPECT_EQ(run->wait(), kBadInput) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("no/such/file"));
  EXPECT_EQ(Json::parse(read_text(job.directory() / "summary.json"))["step"], 0);
}

TEST(MusterRunWarnings, of_replicas_are_shown_once_and_those_of_earlier_runs_are_not) {
  const std::string warn = "echo '12:34:56 warning script-x: mind the gap'; ";
  ScriptJob job(
      manifest({{"chief", script(warn + "[ $MUSTER_ATTEMPT = 1 ] && "
                                        "echo '12:34:57 warning script-x: again' && exit 0; "
                                        "echo said > $EVENTS; while :; do sleep 0.1; done")},
                {"worker", script("sleep 1; " + warn + "while :; do sleep 0.1; done")}}));
  auto run = job.run();
  run->await_output("warning: chief-0: mind the gap");
  job.next_event();
  run->signal(SIGINT);
  EXPECT_EQ(run->wait(), 130);
  EXPECT_THAT(run->output(), Not(HasSubstr("worker-0: mind the gap")));
  std::ofstream(job.directory() / "logs" / "chief-0.log", std::ios::app)
      << "12:34:58 warning script-x: of the earlier run\n";
  auto again = job.run();
  EXPECT_EQ(again->wait(), kSuccess) << again->output();
  EXPECT_THAT(again->output(),
              AllOf(HasSubstr("warning: chief-0: again"), Not(HasSubstr("of the earlier run"))));
}

TEST(MusterRunWarnings, name_a_damaged_checkpoint_and_evaluate_passes_over_it) {
  ScriptJob job("");
  run_interrupted(job);
  const std::string list = read_text(job.directory() / "checkpoints" / "checkpoint");
  const std::string newest =
      list.substr(list.find('"') + 1, list.find("\"\n") - list.find('"') - 1);
  fs::resize_file(job.directory() / "checkpoints" / newest / "model-00000-of-00001.safetensors",
                  1000);
  const std::string passed_over = newest + " is passed over: ";
  auto evaluate = job.muster({"evaluate", "--checkpoint", "run"});
  EXPECT_EQ(evaluate->wait(), kSuccess) << evaluate->output();
  EXPECT_THAT(evaluate->output(), HasSubstr(passed_over));
  auto again = run_mnist(job, {"spec.training.checkpoint.everySteps=20"});
  EXPECT_EQ(again->wait(), kSuccess) << again->output();
  // Whichever replica is first to see it; `muster run`, which looks before, leaves it to them.
  EXPECT_EQ(count(again->output(), "-0: checkpoint "), 1) << again->output();
  EXPECT_EQ(count(again->output(), passed_over), 1) << again->output();
}

TEST(MusterRunWarnings, refuse_to_begin_again_where_all_checkpoints_are_damaged) {
  ScriptJob job("");
  run_interrupted(job);
  for (const auto& entry : fs::directory_iterator(job.directory() / "checkpoints"))
    if (fs::exists(entry.path() / "manifest.json"))
      fs::resize_file(entry.path() / "manifest.json", 100);
  auto again = run_mnist(job, {"spec.training.checkpoint.everySteps=20"});
  EXPECT_EQ(again->wait(), kBadInput) << again->output();
  EXPECT_EQ(count(again->output(), "found only damaged ones: "), 1) << again->output();
  EXPECT_THAT(again->output(), HasSubstr("/manifest.json: truncated"));
}

TEST(MusterRunWarnings, say_that_training_begins_again_where_its_checkpoints_are_gone) {
  ScriptJob job("");
  run_interrupted(job);
  fs::remove_all(job.directory() / "checkpoints");
  auto again = run_mnist(job, {"spec.training.steps=20", "spec.training.epochs=null"});
  EXPECT_EQ(again->wait(), 0) << again->output();
  EXPECT_THAT(again->output(), HasSubstr("training begins again at step 0"));
}

TEST(MusterRunFailed, tells_of_damaged_checkpoints_before_it_advises_a_retry) {
  ScriptJob job("");
  set_trainer(job,
              "mkdir -p ${GATE%/*}/run/checkpoints/ckpt-20-g1\n"
              "echo '{' > ${GATE%/*}/run/checkpoints/ckpt-20-g1/manifest.json\nexit 90");
  auto run = run_mnist(job, {});
  EXPECT_EQ(run->wait(), kDiverged) << run->output();
  EXPECT_THAT(run->output(),
              AllOf(HasSubstr("found only damaged ones: "), HasSubstr("move ckpt-20-g1 away"),
                    HasSubstr(" --retry"), Not(HasSubstr("There is no checkpoint"))));
}

// A file in the place of the folder: the storage answers, but with an error.
TEST(MusterRunFailed, keeps_its_summary_where_its_checkpoints_cannot_be_read) {
  ScriptJob job("");
  set_trainer(job,
              ": > ${GATE%/*}/run/checkpoints\n"
              "exit 90");
  auto run = run_mnist(job, {});
  EXPECT_EQ(run->wait(), kDiverged) << run->output();
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_EQ(summary["state"], "Failed");
  EXPECT_TRUE(summary["checkpoint"].is_null());
  auto again = run_mnist(job, {});
  EXPECT_EQ(again->wait(), kDiverged) << again->output();
  for (const auto* one : {run.get(), again.get()}) {
    EXPECT_THAT(one->output(), AllOf(HasSubstr("Failed after "), HasSubstr("cannot be read: "),
                                     HasSubstr(" --retry")));
  }
}

TEST(MusterEvaluate, says_muster_to_who_typed_muster) {
  ScriptJob job("");
  auto help = job.muster({"predict", "--help"});
  EXPECT_EQ(help->wait(), kSuccess);
  EXPECT_THAT(help->output(),
              AllOf(HasSubstr("Usage: muster predict"), Not(HasSubstr("muster-trainer"))));
  auto nowhere = job.muster({"evaluate", "--checkpoint", "nowhere"});
  EXPECT_EQ(nowhere->wait(), kBadInput);
  EXPECT_THAT(nowhere->output(), testing::StartsWith("muster: nowhere: expected"));
}

}  // namespace
}  // namespace muster::test
