#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr const char* kJob = R"(apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: j}
spec:
  training:
    model:
      layers:
        - dense: {name: a, units: 5}
        - dense: {name: b, units: 4}
        - add: {inputs: [a, b]}
        - dense: {units: 3}
    data:
      train: {syntheticClasses: {samples: 100, shape: [6], classes: 3}, skip: 100}
    epochs: 1
  replicaSpecs: {chief: {}}
)";

// What `muster` says of a text as job.yaml.
struct Said {
  int exit_code;
  std::string output;
};
Said say(const std::string& manifest, const std::vector<std::string>& arguments,
         std::filesystem::path* folder = nullptr) {
  static std::unique_ptr<ScriptJob> job;
  job = std::make_unique<ScriptJob>(manifest);
  if (folder != nullptr) *folder = job->folder();
  auto muster = job->muster(arguments);
  const int code = muster->wait();
  return {code, muster->output()};
}

TEST(Validate, tells_each_problem_on_a_line_of_its_own_by_line) {
  const Said said = say(kJob, {"validate", "job.yaml"});
  EXPECT_EQ(said.exit_code, kBadInput);
  EXPECT_EQ(said.output,
            "job.yaml:10: spec.training.model.layers[2].add.inputs: expected inputs of one shape, "
            "found a of [5] and b of [4]\n"
            "job.yaml:13: spec.training.data.train.skip: expected less than its 100 samples, found "
            "100\n");
}

constexpr const char* kClaim = R"(apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
---
)";

TEST(Validate, looks_at_each_job_of_a_file) {
  const Said said = say(std::string(kClaim) + kJob + "---\n" + kJob, {"validate", "job.yaml"});
  EXPECT_EQ(said.exit_code, kBadInput);
  EXPECT_THAT(said.output, HasSubstr("job.yaml:14: spec.training.model.layers[2].add.inputs:"));
  EXPECT_THAT(said.output, HasSubstr("job.yaml:30: spec.training.model.layers[2].add.inputs:"));
  EXPECT_THAT(said.output, HasSubstr("note: job.yaml:2: PersistentVolumeClaim data is no job"));
}

std::string named(const std::string& name) {
  std::string job = manifest({{"chief", script("exit 0")}});
  const std::string old = "name: script";
  return job.replace(job.find(old), old.size(), "name: " + name);
}

TEST(Validate, names_each_valid_job_of_a_file) {
  const Said said = say(named("a") + "---\n" + named("b"), {"validate", "job.yaml"});
  EXPECT_EQ(said.exit_code, kSuccess);
  EXPECT_THAT(said.output, MatchesRegex("job.yaml:[0-9]+: TrainingJob a: valid\n"
                                        "job.yaml:[0-9]+: TrainingJob b: valid\n"));
  const Said one = say(named("a") + "---\n" + kJob, {"validate", "job.yaml"});
  EXPECT_EQ(one.exit_code, kBadInput);
  EXPECT_THAT(one.output, HasSubstr(": TrainingJob a: valid\n"));
  EXPECT_THAT(one.output, Not(HasSubstr("TrainingJob j: valid")));
}

TEST(Validate, refuses_two_jobs_of_one_name_in_a_file) {
  for (const char* command : {"validate", "submit"}) {
    const Said said = say(named("a") + "---\n" + named("a"), {command, "job.yaml"});
    EXPECT_EQ(said.exit_code, kBadInput);
    EXPECT_THAT(
        said.output,
        testing::ContainsRegex("job.yaml:[0-9]+: metadata.name: expected a name that no other job "
                               "of the file has, found a, as in job.yaml:[0-9]+\n"));
    EXPECT_THAT(said.output, Not(HasSubstr("valid\n")));
  }
}

TEST(Validate, reads_standard_input_once) {
  for (const char* command : {"validate", "submit"}) {
    const Said said = say(kJob, {command, "-", "-"});
    EXPECT_EQ(said.exit_code, kUsage);
    EXPECT_THAT(said.output, HasSubstr("expected \"-\", standard input, once, found it again"));
  }
}

TEST(Validate, names_the_option_that_is_no_yaml) {
  const Said said = say(kJob, {"validate", "job.yaml", "--set", "spec.x=[1"});
  EXPECT_EQ(said.exit_code, kUsage);
  EXPECT_EQ(said.output,
            "muster: --set spec.x=[1: expected ',' or the closing ']' of the list, found the end "
            "of the text\n");
}

TEST(Render, takes_the_one_job_of_a_file_and_passes_over_other_objects) {
  const std::string job = manifest({{"chief", script("exit 0")}});
  const Said one = say(kClaim + job, {"render", "job.yaml"});
  EXPECT_EQ(one.exit_code, kSuccess) << one.output;
  const Said two = say(job + "---\n" + job, {"render", "job.yaml"});
  EXPECT_EQ(two.exit_code, kBadInput);
  EXPECT_THAT(two.output, HasSubstr("job.yaml: expected one job, found 2: script, script"));
  const Said none = say(std::string(kClaim) + kClaim, {"render", "job.yaml"});
  EXPECT_EQ(none.exit_code, kBadInput);
  EXPECT_THAT(none.output, HasSubstr("job.yaml: expected a job, found only PersistentVolumeClaim"));
}

TEST(Validate, means_by_a_number_what_kubectl_means) {
  const Said said = say(manifest({{"chief", script("exit 0")}}),
                        {"validate", "job.yaml", "--set", "spec.runPolicy.backoffLimit=0b10"});
  EXPECT_EQ(said.exit_code, kSuccess) << said.output;
}

TEST(Validate, names_the_place_in_a_tfjob) {
  const Said said = say(R"(apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: tensorflow
            image: tf
            env:
            - {name: A, value: b}
            - {name: TF_CONFIG, value: "{}"}
            - {nam: C}
)",
                        {"validate", "job.yaml"});
  EXPECT_EQ(said.exit_code, kBadInput);
  const std::string env = "spec.tfReplicaSpecs.Worker.template.spec.containers[0].env";
  EXPECT_THAT(said.output, HasSubstr("job.yaml:14: " + env +
                                     "[1].name: expected a variable other "
                                     "than TF_CONFIG and MUSTER_*, which Muster sets"));
  EXPECT_THAT(said.output, HasSubstr("job.yaml:15: " + env + "[2].name: expected a string"));
}

TEST(Validate, notes_what_kubernetes_does_not_know_in_a_template) {
  const Said said = say(R"(apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: j}
spec:
  replicaSpecs:
    worker:
      template:
        spec:
          containers:
          - {name: a, image: i}
          restartPolicyy: Never
)",
                        {"validate", "job.yaml"});
  EXPECT_EQ(said.exit_code, kSuccess);
  EXPECT_EQ(said.output,
            "job.yaml: valid\n"
            "note: job.yaml:11: spec.replicaSpecs.worker.template.spec.restartPolicyy: Kubernetes "
            "1.34 knows no such field; did you mean restartPolicy?\n");
}

// No file is an image: nothing is decoded.
TEST(Validate, looks_at_the_files_of_images) {
  const std::string manifest = R"(apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: j}
spec:
  training:
    model:
      layers:
        - conv2d: {filters: 2}
        - globalAveragePool: {}
        - dense: {units: 3}
    data:
      train: {imageCsv: {file: list.csv, imageSize: [8, 8]}, take: 4}
      validation: {imageFolder: {path: images, imageSize: [8, 8]}}
    epochs: 1
  replicaSpecs: {chief: {}}
)";
  ScriptJob job(manifest);
  const auto validate = [&] {
    auto muster = job.muster({"validate", "job.yaml"});
    return std::pair(muster->wait(), muster->output());
  };
  auto [absent_code, absent] = validate();
  EXPECT_EQ(absent_code, kSuccess);
  EXPECT_THAT(absent,
              HasSubstr("spec.training.data.train.imageCsv: its files cannot be read here "));
  EXPECT_THAT(absent, HasSubstr("images: expected a folder, found none), so"));
  std::filesystem::create_directories(job.folder() / "images" / "b");
  std::ofstream(job.folder() / "images" / "b" / "1.jpg") << "no image";
  std::ofstream(job.folder() / "list.csv") << "images/b/1.jpg,1\nimages/b/2.jpg,3\n";
  auto [code, output] = validate();
  EXPECT_EQ(code, kBadInput);
  EXPECT_THAT(output,
              HasSubstr("job.yaml:12: spec.training.data.train.imageCsv: expected a list of "
                        "images that can be read, found "));
  EXPECT_THAT(output, HasSubstr("found none for 1: "));
  std::ofstream(job.folder() / "list.csv") << "images/b/1.jpg,1\nimages/b/1.jpg,3\n";
  output = validate().second;
  EXPECT_THAT(output,
              HasSubstr("job.yaml:12: spec.training.data.train.take: expected from 1 to 2"));
  EXPECT_THAT(output,
              HasSubstr("job.yaml:10: spec.training.model.layers[2].dense.units: expected 4 "
                        "outputs, one for each class, found 3"));
}

TEST(Validate, takes_anchors_and_names_the_line_where_their_text_stands) {
  const auto job = [](const std::string& samples) {
    return "apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: &n j}\nspec:\n"
           "  training:\n    model: {layers: [{dense: {name: *n, units: 3}}]}\n    data:\n"
           "      train: &data\n        syntheticClasses: {samples: " +
           samples +
           ", shape: [6], classes: 3}\n      validation:\n        <<: *data\n        take: 10\n"
           "    epochs: 1\n  replicaSpecs: {chief: {}}\n";
  };
  const Said good = say(job("100"), {"validate", "job.yaml"});
  EXPECT_EQ(good.exit_code, kSuccess) << good.output;
  const Said bad = say(job("-1"), {"validate", "job.yaml"});
  EXPECT_EQ(bad.exit_code, kBadInput);
  EXPECT_THAT(bad.output,
              HasSubstr("job.yaml:9: spec.training.data.train.syntheticClasses.samples: expected"));
  EXPECT_THAT(bad.output,
              HasSubstr("job.yaml:9: spec.training.data.validation.syntheticClasses.samples: "));
}

TEST(Run, refuses_what_does_not_fit_before_it_makes_anything) {
  std::filesystem::path folder;
  const Said said = say(kJob, {"run", "job.yaml", "--directory", "run"}, &folder);
  EXPECT_EQ(said.exit_code, kBadInput);
  EXPECT_THAT(said.output, HasSubstr("job.yaml:10: spec.training.model.layers[2].add.inputs"));
  EXPECT_THAT(said.output, HasSubstr("\nmuster: job.yaml:13: spec.training.data.train.skip"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(Validate, gives_place_and_path_in_json) {
  const Json malformed =
      Json::parse(say("a: [1\n", {"validate", "job.yaml", "-o", "json"}).output)[0]["problems"][0];
  EXPECT_THAT(malformed["where"].get<std::string>(), MatchesRegex("job.yaml:[0-9]+:[0-9]+"));
  EXPECT_EQ(malformed["expected"], "',' or the closing ']' of the list that begins on line 1");
  const Json mismatch =
      Json::parse(say(kJob, {"validate", "job.yaml", "-o", "json"}).output)[0]["problems"][0];
  EXPECT_EQ(mismatch["where"], "job.yaml:10");
  EXPECT_EQ(mismatch["path"], "spec.training.model.layers[2].add.inputs");
}

TEST(Validate, looks_at_data_files_that_are_here_and_says_where_they_are_not) {
  const std::string images = MUSTER_SOURCE_DIR "/examples/data/mnist/t10k-images-idx3-ubyte.gz";
  const std::string labels = MUSTER_SOURCE_DIR "/examples/data/mnist/t10k-labels-idx1-ubyte.gz";
  const auto job = [](const std::string& train, int units) {
    return "apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"
           "  training:\n    model: {layers: [{dense: {units: " +
           std::to_string(units) + "}}]}\n    data: {train: " + train +
           "}\n    epochs: 1\n  replicaSpecs: {chief: {}}\n";
  };
  const auto idx = [](const std::string& a, const std::string& b) {
    return "{idx: {images: " + a + ", labels: " + b + "}, take: 20000}";
  };
  const Said here = say(job(idx(images, labels), 11), {"validate", "job.yaml"});
  EXPECT_EQ(here.exit_code, kBadInput);
  EXPECT_THAT(here.output, HasSubstr("job.yaml:6: spec.training.model.layers[0].dense.units: "
                                     "expected 10 outputs, one for each class, found 11\n"));
  EXPECT_THAT(here.output, HasSubstr("job.yaml:7: spec.training.data.train.take: expected from 1 "
                                     "to 10000 (10000 samples, 0 skipped), found 20000\n"));
  const Said swapped = say(job(idx(labels, images), 10), {"validate", "job.yaml"});
  EXPECT_THAT(swapped.output, HasSubstr("spec.training.data.train.idx: expected IDX files that can "
                                        "be read, found " +
                                        labels));
  const Said absent = say(job(idx("no/images", "no/labels"), 11), {"validate", "job.yaml"});
  EXPECT_EQ(absent.exit_code, kSuccess);
  EXPECT_THAT(absent.output, HasSubstr("job.yaml: valid\nnote: job.yaml:7: "
                                       "spec.training.data.train.idx: its files cannot be read"));
  EXPECT_THAT(absent.output, HasSubstr("no/images: expected IDX images, found no such file), so "));
}

TEST(CommandLine, names_a_misspelt_command_and_knows_its_version) {
  const Said misspelt = say(kJob, {"vaildate", "job.yaml"});
  EXPECT_EQ(misspelt.exit_code, kUsage);
  EXPECT_THAT(misspelt.output,
              HasSubstr("did you mean validate? Expected one of the commands run, "));
  const Said version = say(kJob, {"--version"});
  EXPECT_EQ(version.exit_code, kSuccess);
  EXPECT_THAT(version.output, MatchesRegex("muster [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_EQ(version.output, say(kJob, {"version"}).output);
}

}  // namespace
}  // namespace muster::test
