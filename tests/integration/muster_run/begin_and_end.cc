#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <tuple>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

// What `muster run` looks at before a job's first step and after its last one.

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string line_job(const std::string& training, const std::string& roles = "{chief: {}}") {
  return "apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: line}\nspec:\n"
         "  training:\n"
         "    data: {train: {syntheticLinear: {samples: 100}}}\n"
         "    optimizer: {name: sgd, learningRate: 0.01}\n"
         "    epochs: 1\n" +
         training + "  replicaSpecs: " + roles + "\n";
}

constexpr const char* kModel = "    model: {name: linear-regression}\n";
// The same layer beside another one, and one of the same name and another shape.
constexpr const char* kMore =
    "    model: {loss: meanSquaredError, layers: [{dense: {name: before, units: 1}},"
    " {dense: {name: linear, units: 1}}]}\n";
constexpr const char* kOther =
    "    model: {loss: meanSquaredError, layers: [{dense: {name: linear, units: 2}},"
    " {dense: {name: after, units: 1}}]}\n";

class InitialWeights : public testing::Test {
 protected:
  InitialWeights() : first_(line_job(kModel)) {
    EXPECT_EQ(first_.run()->wait(), kSuccess);
    model_ = first_.directory() / "model/model.safetensors";
  }

  ScriptJob first_;
  fs::path model_;
};

TEST_F(InitialWeights, are_those_of_another_job_whoever_reads_them) {
  for (const char* roles : {"{chief: {}}", "{ps: {replicas: 2}, chief: {}}"}) {
    ScriptJob job(
        line_job(kMore + std::string("    initializeFrom: ") + model_.string() + "\n", roles));
    auto run = job.run();
    EXPECT_EQ(run->wait(), kSuccess) << run->output();
    EXPECT_THAT(run->output(),
                HasSubstr("note: job.yaml:10: spec.training.initializeFrom: 2 of the model's 4 "
                          "tensors begin with those of " +
                          model_.string() +
                          "; 2 begin with their initializers, for it does not have them: "
                          "before/bias, before/kernel"));
  }
}

TEST_F(InitialWeights, that_are_missing_or_do_not_fit_are_refused_before_anything_is_made) {
  const std::pair<std::string, std::string> cases[] = {
      {"no/such/file", "no/such/file: No such file"},
      {first_.directory(), "found a job's directory; name its model/model.safetensors"},
      {model_, "linear/bias of [1] instead of [2], linear/kernel of [1, 1] instead of [1, 2]"}};
  for (const auto& [from, words] : cases) {
    ScriptJob job(line_job(kOther + std::string("    initializeFrom: ") + from + "\n"));
    auto run = job.run();
    EXPECT_EQ(run->wait(), kBadInput) << run->output();
    EXPECT_THAT(run->output(),
                AllOf(HasSubstr("job.yaml:10: spec.training.initializeFrom: "), HasSubstr(words)));
    EXPECT_FALSE(fs::exists(job.directory()));
  }
}

TEST_F(InitialWeights, are_looked_at_by_validate_where_they_are_here) {
  const auto validate = [](const std::string& manifest) {
    ScriptJob job(manifest);
    auto muster = job.muster({"validate", "job.yaml"});
    return std::pair(muster->wait(), muster->output());
  };
  const std::string here = "    initializeFrom: " + model_.string() + "\n";
  auto [code, output] = validate(line_job(kMore + here));
  EXPECT_EQ(code, kSuccess);
  EXPECT_THAT(output, HasSubstr("note: job.yaml:10: spec.training.initializeFrom: 2 of the model's "
                                "4 tensors begin with those of "));
  std::tie(code, output) = validate(line_job(kOther + here));
  EXPECT_EQ(code, kBadInput);
  EXPECT_THAT(output, HasSubstr("linear/bias of [1] instead of [2]"));
  std::tie(code, output) =
      validate(line_job(kOther + here + "    initializeOptions: {skipMismatched: true}\n"));
  EXPECT_EQ(code, kBadInput);
  EXPECT_THAT(output, AllOf(HasSubstr("expected at least one tensor to be taken, found that 0 of "),
                            HasSubstr("other shapes: linear/bias of [1] instead of [2]")));
  std::tie(code, output) =
      validate(line_job(kModel + std::string("    initializeFrom: far/away\n")));
  EXPECT_EQ(code, kSuccess);
  EXPECT_THAT(output, HasSubstr("far/away is not here, so that what it holds is not checked"));
  std::string frozen = kMore;
  frozen.replace(frozen.find("units: 1}}, "), 9, "units: 1, trainable: false}");
  for (const std::string& from : {std::string(), here}) {
    std::tie(code, output) = validate(line_job(frozen + from));
    EXPECT_EQ(code, kSuccess);
    EXPECT_THAT(output,
                HasSubstr("frozen with the random numbers of their initializers: before/kernel\n"));
  }
  // The folder of an export does as well as its file.
  std::tie(code, output) = validate(
      line_job(kMore + std::string("    initializeFrom: ") + model_.parent_path().string() + "\n"));
  EXPECT_EQ(code, kSuccess);
  EXPECT_THAT(output, HasSubstr("2 of the model's 4 tensors begin with those of "));
}

// A checkpoint has all that a job goes on with.
TEST_F(InitialWeights, are_not_asked_for_by_a_job_that_has_a_checkpoint) {
  ScriptJob job(line_job(kModel + std::string("    checkpoint: {everySteps: 1}\n") +
                         "    initializeFrom: " + model_.string() + "\n"));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  fs::remove(job.directory() / "job.json");
  fs::remove(model_);
  auto again = job.run();
  EXPECT_EQ(again->wait(), kSuccess) << again->output();
}

TEST(Results, that_are_gone_are_no_success_any_more) {
  ScriptJob job(line_job(kModel));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  fs::resize_file(job.directory() / "model/model.safetensors", 20);
  auto again = job.run();
  EXPECT_EQ(again->wait(), kBadInput);
  EXPECT_THAT(again->output(),
              AllOf(HasSubstr("line: Succeeded"), HasSubstr("model/model.safetensors: header"),
                    HasSubstr("to train it anew, give it another --directory")));
  fs::remove_all(job.directory() / "checkpoints");
  auto once_more = job.run();
  EXPECT_EQ(once_more->wait(), kBadInput);
  EXPECT_THAT(once_more->output(), HasSubstr("manifest.json: No such file"));
}

// A trainer that is asked to stop when it has done all, and ends as one that has.
TEST(Results, are_looked_at_where_a_stop_came_after_the_last_step) {
  ScriptJob job(line_job(kModel));
  const fs::path trainer = job.folder() / "trainer";
  std::ofstream(trainer) << "#!/bin/sh\n"
                            "trap 'echo \"{\\\"step\\\": 4, \\\"model\\\": \\\"model/gone\\\"}\" "
                            "> $MUSTER_STORAGE/result.json; exit 0' TERM\n"
                            "echo here > $EVENTS\nwhile :; do sleep 0.1; done\n";
  fs::permissions(trainer, fs::perms::owner_all);
  job.set("MUSTER_TRAINER", trainer);
  auto first = job.run();
  job.next_event();
  first->signal(SIGINT);
  EXPECT_EQ(first->wait(), 130) << first->output();
  auto second = job.run();
  EXPECT_EQ(second->wait(), kBadInput) << second->output();
  EXPECT_THAT(second->output(), HasSubstr("model/gone: No such file"));
}

int run_in_shell(const ScriptJob& job, const std::string& arguments) {
  const std::string command = "cd " + job.folder().string() +
                              " && " MUSTER_BINARY_DIR "/bin/muster " + arguments + " 2>said";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Output, that_cannot_be_written_is_told_and_ends_with_its_code) {
  ScriptJob job(line_job(kModel));
  for (const char* command :
       {"run job.yaml --directory run", "run job.yaml --directory run -o json", "status run",
        "status run -o json", "logs run", "validate job.yaml", "render job.yaml", "--help",
        "--version", "evaluate --help", "stop run"}) {
    EXPECT_EQ(run_in_shell(job, command + std::string(" >/dev/full")), kCannotWrite) << command;
    EXPECT_THAT(read_text(job.folder() / "said"),
                HasSubstr("cannot write standard output (/dev/full): No space left on device"))
        << command;
  }
  EXPECT_TRUE(fs::exists(job.directory() / "model/model.safetensors"));
  EXPECT_EQ(run_in_shell(job, "validate no.yaml >/dev/full"), kBadInput);
}

// The shell ends as the last command of a pipe does: `said` tells of the first.
TEST(Output, that_nobody_reads_any_more_ends_without_a_word) {
  ScriptJob job(line_job(kModel));
  EXPECT_EQ(run_in_shell(job, "run job.yaml --directory run | true"), kSuccess);
  for (const char* command : {"status run", "logs run", "render job.yaml"}) {
    EXPECT_EQ(run_in_shell(job, command + std::string(" | true")), kSuccess) << command;
    EXPECT_EQ(read_text(job.folder() / "said"), "") << command;
  }
  await_file(job.directory() / "model/model.safetensors");
}

}  // namespace
}  // namespace muster::test
