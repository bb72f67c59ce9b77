#include "trainer/loop/evaluation/evaluation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/compute/initialize.h"
#include "trainer/data/batches/batcher.h"
#include "trainer/loop/commands/on_samples.h"
#include "trainer/loop/roles/roles.h"

namespace muster::loop {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kMissing = "{idx: {images: /nowhere/images, labels: /nowhere/labels}}";

// A training whose `name` data are `source`.
fs::path with_data(const fs::path& folder, const std::string& name, const std::string& source,
                   const std::string& more = "epochs: 1\n") {
  const fs::path path = write_training(folder, more);
  std::string text = read_file(path);
  const size_t begin = text.find("  " + name + ": ");
  const size_t end = text.find('\n', begin);
  text.replace(begin, end - begin, source.empty() ? "" : "  " + name + ": " + source);
  write_file_atomically(path, text);
  return path;
}

group::Membership of_a_job(const fs::path& folder, const fs::path& training, group::Role role) {
  group::Membership membership = alone(folder, training);
  membership.replicas = {{"chief", 1}, {"evaluator", 1}};
  membership.role = role;
  membership.role_name = role == group::Role::evaluator ? "evaluator" : "chief";
  return membership;
}

// Trains as the chief of a job that has an evaluator; returns result.json.
Json train_as_chief(const fs::path& folder, const fs::path& training) {
  Json result;
  const auto membership = of_a_job(folder, training, group::Role::chief);
  EXPECT_EQ(run_alone(membership, {}, &result), kSuccess);
  return result;
}

int evaluate_as_evaluator(const fs::path& folder, const fs::path& training) {
  return run_evaluator(of_a_job(folder, training, group::Role::evaluator), {});
}

template <class Action>
std::pair<std::string, int> error_of(Action action) {
  try {
    action();
  } catch (const Invalid& error) {
    return {error.what(), error.exit_code()};
  }
  return {"no error", 0};
}

// The mean over the classes of the share of their samples that the model predicts to be theirs, by
// the plainest code.
double balanced_accuracy(compute::Engine& engine, const data::Dataset& dataset) {
  data::Batcher batcher(dataset, 1);
  data::BatchBuffer buffer(dataset, 1);
  std::map<int32_t, std::pair<double, double>> classes;  // samples, and those found
  for (uint64_t sample = 0; sample < dataset.size(); ++sample) {
    std::vector<float> outputs(static_cast<size_t>(engine.output_count()));
    engine.predict(batcher.fill(buffer, 0, sample), outputs);
    auto& [all, found] = classes[dataset.label(sample)];
    ++all;
    if (std::ranges::max_element(outputs) - outputs.begin() == dataset.label(sample)) ++found;
  }
  double sum = 0;
  for (const auto& [label, counts] : classes) sum += counts.second / counts.first;
  return sum / static_cast<double>(classes.size());
}

TEST(EvaluationTest, CountsByClassAndHasTheSameBitsWithAnyNumberOfThreads) {
  const fs::path folder = fresh_folder("threads");
  std::vector<Json> found;
  for (const char* threads : {"1", "2", "3"}) {
    const fs::path path = with_data(folder, "validation",
                                    "{syntheticClasses: {samples: 230, shape: [8], classes: 4}}");
    std::string text = read_file(path);
    text.replace(text.find("threads: 1"), 10, std::string("threads: ") + threads);
    write_file_atomically(path, text);
    Training training = Training::load(path);
    const EvaluationData data(training, {"validation"});
    const Assembly assembly = assemble(training, 1, false, {training.spec.threads});
    compute::HostView parameters(assembly.engine->parameters());
    compute::initialize_parameters(assembly.engine->layout(), 3, parameters.values());
    parameters.store();
    const auto& dataset = *data.parts().at(0).dataset;
    const auto evaluation = evaluate(*assembly.engine, dataset, assembly.spec());
    EXPECT_EQ(evaluation->samples, 230u);
    found.push_back(evaluation->json());
    EXPECT_DOUBLE_EQ(compute::value_of(evaluation->metrics, "balancedAccuracy").value(),
                     balanced_accuracy(*assembly.engine, dataset));
    EXPECT_NE(compute::value_of(evaluation->metrics, "balancedAccuracy").value(),
              compute::value_of(evaluation->metrics, "accuracy").value());
  }
  EXPECT_EQ(found[0].dump(), found[1].dump());
  EXPECT_EQ(found[0].dump(), found[2].dump());
}

TEST(DataToEvaluateWithTest, AreLookedAtBeforeTheTrainingByWhoTrainsAlone) {
  const fs::path folder = fresh_folder("bad-test-data");
  const fs::path training = with_data(folder, "test", kMissing);
  const auto [message, code] = error_of([&] { run_alone(alone(folder, training), {}, nullptr); });
  EXPECT_THAT(message, HasSubstr("/nowhere/images"));
  EXPECT_EQ(code, kBadInput);
  EXPECT_FALSE(fs::exists(folder / "job" / "checkpoints"));
}

TEST(EvaluatorTest, EvaluatesOnWhatIsGoodAndEndsWithWhatIsBad) {
  const fs::path folder = fresh_folder("evaluator-test");
  const fs::path training = with_data(folder, "test", kMissing);
  const Json result = train_as_chief(folder, training);
  EXPECT_FALSE(result.contains("validation"));
  const auto [message, code] = error_of([&] { evaluate_as_evaluator(folder, training); });
  EXPECT_THAT(message, HasSubstr("/nowhere/images"));
  EXPECT_EQ(code, kBadInput);
  const Json evaluation =
      Document::load(folder / "job" / "evaluations" / (result["step"].dump() + ".json")).value();
  EXPECT_TRUE(evaluation["final"].get<bool>());
  EXPECT_TRUE(evaluation["validation"]["accuracy"].is_number());
  EXPECT_THAT(evaluation["test"]["error"].get<std::string>(), HasSubstr("/nowhere/images"));
}

TEST(EvaluatorTest, EvaluatesOnTestDataThoughValidationDataAreBad) {
  const fs::path folder = fresh_folder("evaluator-validation");
  const fs::path training = with_data(folder, "validation", kMissing);
  const Json result = train_as_chief(folder, training);
  EXPECT_THAT(error_of([&] { evaluate_as_evaluator(folder, training); }).first,
              HasSubstr("/nowhere/images"));
  const Json evaluation =
      Document::load(folder / "job" / "evaluations" / (result["step"].dump() + ".json")).value();
  EXPECT_TRUE(evaluation["test"]["accuracy"].is_number());
  EXPECT_TRUE(evaluation["validation"].contains("error"));
}

// There is no checkpoint, and it does not wait for one.
TEST(EvaluatorTest, EndsAtOnceWhereNoDataAreGood) {
  const fs::path folder = fresh_folder("evaluator-nothing");
  with_data(folder, "validation", kMissing);
  std::string text = read_file(folder / "training.yaml");
  const size_t begin = text.find("  test: ");
  text.replace(begin, text.find('\n', begin) - begin, std::string("  test: ") + kMissing);
  write_file_atomically(folder / "training.yaml", text);
  const auto [message, code] =
      error_of([&] { evaluate_as_evaluator(folder, folder / "training.yaml"); });
  EXPECT_EQ(code, kBadInput);
  EXPECT_THAT(message, AllOf(HasSubstr("validation"), HasSubstr("test")));
}

TEST(EvaluatorTest, TakesValidationDataThatLackAClass) {
  const fs::path folder = fresh_folder("evaluator-classes");
  const fs::path training =
      with_data(folder, "validation", "{syntheticClasses: {samples: 100, shape: [8], classes: 3}}");
  const Json result = train_as_chief(folder, training);
  EXPECT_EQ(evaluate_as_evaluator(folder, training), kSuccess);
  EXPECT_THAT(error_of([&] { evaluate_checkpoint(folder / "job", "validation"); }).second, 0);
}

// The validation data are of other classes: the more it learns, the worse.
TEST(EvaluatorTest, EndsWithTheBestWeightsWhereThoseAreExported) {
  const fs::path folder = fresh_folder("evaluator-best");
  const std::string others = "{syntheticClasses: {samples: 100, shape: [8], classes: 4, seed: 7}}";
  const fs::path training =
      with_data(folder, "validation", others,
                "epochs: 60\nevaluation: {}\nearlyStopping: {patience: 2, restoreBest: true}\n"
                "checkpoint: {bestOnly: {}}\n");
  const Json result = train_as_chief(folder, training);
  ASSERT_NE(result["exportedStep"], result["step"]);
  EXPECT_FALSE(result.contains("test"));
  EXPECT_EQ(evaluate_as_evaluator(folder, training), kSuccess);
  const auto evaluation = [&](const Json& step) {
    return Document::load(folder / "job" / "evaluations" / (step.dump() + ".json")).value();
  };
  EXPECT_TRUE(evaluation(result["exportedStep"])["final"].get<bool>());
  EXPECT_TRUE(evaluation(result["exportedStep"]).contains("test"));
  EXPECT_FALSE(evaluation(result["step"])["final"].get<bool>());
}

class OnCheckpointTest : public testing::Test {
 protected:
  OnCheckpointTest() {
    const auto membership =
        alone(folder_, write_training(folder_, "epochs: 3\ncheckpoint: {everySteps: 11}\n"));
    EXPECT_EQ(run_alone(membership, {}, nullptr), kSuccess);
  }
  std::string evaluated(const fs::path& where) {
    return fs::path(evaluate_checkpoint(where, "test")["checkpoint"].get<std::string>()).filename();
  }
  void damage(const fs::path& checkpoint) {
    std::fstream file(checkpoint / "model-00000-of-00001.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('\x7f');
  }

  const fs::path folder_ = fresh_folder("on-checkpoint");
  const fs::path job_ = folder_ / "job";
};

TEST_F(OnCheckpointTest, TakesTheNewestOfAStorageFolder) {
  EXPECT_EQ(evaluated(job_), "ckpt-33-g1");
  EXPECT_EQ(evaluated(job_ / "checkpoints"), "ckpt-33-g1");
  EXPECT_EQ(evaluated(job_ / "checkpoints" / "ckpt-33-g1"), "ckpt-33-g1");
}

TEST_F(OnCheckpointTest, PassesOverADamagedOneUnlessItIsNamed) {
  const auto names = checkpoint::Store(job_ / "checkpoints", 5).list();
  ASSERT_GE(names.size(), 2u);
  const fs::path newest = job_ / "checkpoints" / names[0].text();
  damage(newest);
  EXPECT_EQ(evaluated(job_), names[1].text());
  EXPECT_THAT(error_of([&] { evaluated(newest); }).first, HasSubstr("damaged"));
  for (const auto& name : names) damage(job_ / "checkpoints" / name.text());
  EXPECT_THAT(error_of([&] { evaluated(job_); }).first, HasSubstr("expected a whole checkpoint"));
}

TEST_F(OnCheckpointTest, TakesAnExportedModelOrItsFolder) {
  const Json of_checkpoint = evaluate_checkpoint(job_, "test");
  const fs::path file = job_ / "model" / "model.safetensors";
  for (const fs::path& where : {file, file.parent_path()}) {
    const Json evaluated = evaluate_checkpoint(where, "test");
    EXPECT_EQ(evaluated["model"], file.string());
    EXPECT_EQ(evaluated["loss"], of_checkpoint["loss"]);
    EXPECT_EQ(predict_checkpoint(where, "test", {3})["predictions"],
              predict_checkpoint(job_, "test", {3})["predictions"]);
  }
  const fs::path shard = job_ / "checkpoints" / "ckpt-33-g1" / "model-00000-of-00001.safetensors";
  EXPECT_THAT(error_of([&] { evaluate_checkpoint(shard, "test"); }).first,
              HasSubstr("expected a model that muster has exported"));
  const fs::path pointer = folder_ / "model.safetensors";
  write_file_atomically(pointer, "version https://git-lfs.github.com/spec/v1\noid sha256:1\n");
  EXPECT_THAT(error_of([&] { evaluate_checkpoint(pointer, "test"); }).first,
              HasSubstr("model.safetensors: expected a model that muster has exported, found a "
                        "pointer of git LFS"));
}

TEST_F(OnCheckpointTest, SaysWhatAPlaceIsNot) {
  const auto [nothing, code] = error_of([&] { evaluated(folder_ / "none"); });
  EXPECT_EQ(code, kBadInput);
  EXPECT_THAT(nothing, AllOf(HasSubstr("none"), HasSubstr("found nothing")));
  EXPECT_THAT(error_of([&] { evaluated(folder_); }).first, HasSubstr("found none of them"));
  EXPECT_THAT(error_of([&] { evaluated(folder_ / "training.yaml"); }).first,
              HasSubstr("found something else"));
}

TEST_F(OnCheckpointTest, RefusesSamplesThatAreNone) {
  for (const int64_t index : {int64_t{-1}, int64_t{50}, INT64_MIN, INT64_MAX}) {
    const auto [message, code] = error_of([&] { predict_checkpoint(job_, "test", {0, index}); });
    EXPECT_EQ(code, kUsage);
    EXPECT_THAT(message,
                AllOf(HasSubstr("from 0 to 49"), HasSubstr("found " + std::to_string(index))));
  }
}

TEST(OnCheckpoint, DataThatATrainingDoesNotHaveAreAWrongCommandLine) {
  const fs::path folder = fresh_folder("no-test-data");
  const auto membership = alone(folder, with_data(folder, "test", ""));
  EXPECT_EQ(run_alone(membership, {}, nullptr), kSuccess);
  const auto [message, code] = error_of([&] { evaluate_checkpoint(folder / "job", "test"); });
  EXPECT_EQ(code, kUsage);
  EXPECT_THAT(message, HasSubstr("expected test data in its training.data, found validation data; "
                                 "choose them by --data validation"));
}

}  // namespace
}  // namespace muster::loop
