#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/trainer/job.h"
#include "tests/unit/trainer/data/images/pictures.h"
#include "trainer/host/instruction_set.h"

namespace muster::integration {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Ended {
  std::optional<int> code;
  std::string output;  // standard output and error, which are no terminal
};

Ended run(const std::vector<std::string>& arguments,
          const std::map<std::string, std::string>& environment = {},
          const char* program = MUSTER_TRAINER) {
  std::vector<std::string> command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  fs::create_directories(scratch());
  const fs::path log = scratch() / "command.log";
  fs::remove(log);
  Process process(command, environment, log, {});
  const auto code = process.wait();
  return {code, read_file(log)};
}

TEST(CommandTest, AMalformedAddressIsTheCallersMistake) {
  for (const char* address : {"nonsense", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", ":80"}) {
    const Ended ended = run({"--standalone", "x.yaml", "--http-address", address});
    EXPECT_EQ(ended.code, kUsage) << address;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("--http-address"), HasSubstr(address)));
  }
  const Ended replica = run({}, {{"MUSTER_HTTP_ADDRESS", "nonsense"}});
  EXPECT_EQ(replica.code, kBadConfig);
  EXPECT_THAT(replica.output, HasSubstr("MUSTER_HTTP_ADDRESS"));
}

TEST(CommandTest, ErrorsAreForPeopleUnlessJsonIsAskedFor) {
  const std::vector<std::string> evaluate = {"evaluate", "--checkpoint", "/nowhere"};
  const Ended text = run(evaluate);
  EXPECT_EQ(text.code, kBadInput);
  EXPECT_THAT(text.output, StartsWith("muster-trainer: /nowhere: expected a checkpoint's folder"));
  const Ended json = run(evaluate, {{"MUSTER_LOG_FORMAT", "json"}});
  EXPECT_EQ(json.code, kBadInput);
  EXPECT_EQ(Json::parse(json.output)["level"], "error");
  EXPECT_THAT(run({"--standalone", "/nowhere"}).output, Not(HasSubstr("{")));
  EXPECT_THAT(run({}).output, StartsWith("{"));  // a replica of an operator
}

TEST(CommandTest, AProgramThatComputesWrongDoesNotBegin) {
  if (host::instruction_set() == host::InstructionSet::generic)
    GTEST_SKIP() << "the generic kernels are what others are compared with";
  const fs::path folder = scratch() / "miscomputing";
  fs::create_directories(folder);
  write_file_atomically(folder / "training.yaml", small_training());
  const std::vector<std::string> train = {"--standalone", (folder / "training.yaml").string(),
                                          "--storage", (folder / "job").string()};
  const auto says_why =
      AllOf(HasSubstr("this program computes wrong here"), HasSubstr("normalize_gradient of "),
            HasSubstr("added to what is there: expected "),
            HasSubstr("MUSTER_INSTRUCTION_SET=generic"), Not(HasSubstr("step")));
  for (const std::vector<std::string>& command :
       {train, {"evaluate", "--checkpoint", "x"}, {"predict", "--checkpoint", "x"}, {}}) {
    const Ended ended = run(command, {}, MUSTER_MISCOMPUTING_TRAINER);
    EXPECT_EQ(ended.code, kMiscomputes);
    EXPECT_THAT(ended.output, says_why);
  }
  EXPECT_FALSE(fs::exists(folder / "job"));
  const Ended right =
      run(train, {{"MUSTER_INSTRUCTION_SET", "generic"}}, MUSTER_MISCOMPUTING_TRAINER);
  EXPECT_EQ(right.code, kSuccess) << right.output;
}

TEST(CommandTest, EvaluatesAndPredictsWhatItTrainedBefore) {
  const fs::path folder = scratch() / "trained";
  fs::create_directories(folder);
  write_file_atomically(folder / "training.yaml", small_training());
  const Ended trained = run({"--standalone", (folder / "training.yaml").string(), "--storage",
                             (folder / "job").string()});
  ASSERT_EQ(trained.code, kSuccess) << trained.output;
  EXPECT_THAT(trained.output, AllOf(HasSubstr(" info standalone: "), HasSubstr("\nstep: 2500\n"),
                                    HasSubstr("test accuracy: "), Not(HasSubstr("{"))));
  const Ended evaluated = run({"evaluate", "--checkpoint", (folder / "job").string()});
  EXPECT_EQ(evaluated.code, kSuccess);
  EXPECT_THAT(evaluated.output, AllOf(HasSubstr("ckpt-2500-g1\n"), HasSubstr("\nsamples: 500\n"),
                                      HasSubstr("\ndata: test\n"), Not(HasSubstr("\""))));
  const Ended predicted =
      run({"predict", "--checkpoint", (folder / "job").string(), "--index", "0", "7"});
  EXPECT_EQ(predicted.code, kSuccess);
  EXPECT_THAT(predicted.output,
              AllOf(HasSubstr("\nsample 0: "), HasSubstr("\nsample 7: "),
                    HasSubstr(" with probability "), HasSubstr("(label "), Not(HasSubstr("{"))));
  const Ended none = run({"predict", "--checkpoint", (folder / "job").string(), "--index", "-1"});
  EXPECT_EQ(none.code, kUsage);
  EXPECT_THAT(none.output, HasSubstr("from 0 to 499 of the test data, found -1"));
}

TEST(CommandTest, PredictsOfPicturesAndEndsWithAnErrorForDamagedOnes) {
  const fs::path folder = scratch() / "pictured";
  for (int i = 0; i < 6; ++i) {
    const auto name = std::to_string(i) + ".png";
    data::put(folder / "data/blue" / name, data::png(i));
    data::put(folder / "data/red" / name, data::png(i + 9));
  }
  write_file_atomically(
      folder / "training.yaml",
      "model: {layers: [{dense: {units: 2}}]}\ndata: {train: {imageFolder: {path: " +
          (folder / "data").string() + ", imageSize: [8, 8]}}}\nsteps: 2\n");
  const Ended trained = run({"--standalone", (folder / "training.yaml").string(), "--storage",
                             (folder / "job").string()});
  ASSERT_EQ(trained.code, kSuccess) << trained.output;
  EXPECT_THAT(trained.output, HasSubstr("\nonnx: model/model.onnx\n"));
  const auto predict = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"predict", "--checkpoint", (folder / "job/model").string()});
    return run(more);
  };
  const std::string good = (folder / "data/red/3.png").string();
  const Ended json = predict({good});
  EXPECT_EQ(json.code, kSuccess);
  EXPECT_EQ(Json::parse(json.output)["predictions"][0]["classes"].size(), 2u);
  const Ended text = predict({(folder / "data/red").string(), "-o", "text"});
  EXPECT_EQ(text.code, kSuccess);
  EXPECT_THAT(text.output,
              AllOf(HasSubstr("3.png: "), HasSubstr(" with probability 0."), Not(HasSubstr("{"))));
  data::put(folder / "bad.jpg", "no picture");
  const Ended some = predict({(folder / "bad.jpg").string(), good, "-o", "text"});
  EXPECT_EQ(some.code, kBadInput);
  EXPECT_THAT(some.output, AllOf(HasSubstr("bad.jpg: error: "), HasSubstr("3.png: "),
                                 HasSubstr(" error muster-trainer: ")));
  fs::create_directory(folder / "empty");
  const Ended with_empty = predict({(folder / "empty").string(), good, "-o", "text"});
  EXPECT_EQ(with_empty.code, kBadInput);
  EXPECT_THAT(with_empty.output,
              AllOf(HasSubstr("empty: expected .jpg, .jpeg, .jpe, .jfif or .png files in it"),
                    HasSubstr("3.png: ")));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{good, "--index", "0"},
                                                {"--draw", "there"},
                                                {good, "--score", "2"}})
    EXPECT_EQ(predict(wrong).code, kUsage) << wrong[0];
}

TEST(CommandTest, TellsOfTheObjectsInSamplesOfADetectorsData) {
  const fs::path folder = scratch() / "detected";
  const std::string mnist = MUSTER_SOURCE_DIR "/examples/data/mnist/";
  const Ended digits =
      run({"data", "digits", "--output", (folder / "digits").string(), "--train", "4",
           "--validation", "2", "--size", "64", "--images", mnist + "t10k-images-idx3-ubyte.gz",
           "--labels", mnist + "t10k-labels-idx1-ubyte.gz"});
  ASSERT_EQ(digits.code, kSuccess) << digits.output;
  const auto source = [&](const std::string& part) {
    return "{coco: {annotations: " + (folder / "digits/coco" / (part + ".json")).string() +
           ", folder: " + (folder / "digits/coco" / part).string() + ", imageSize: [64, 64]}}";
  };
  write_file_atomically(
      folder / "training.yaml",
      "model: {name: ssd-mobilenet-v1, classes: 10, depthMultiplier: 0.1}\nbatchSize: 2\ndata: "
      "{train: " +
          source("train") + ", test: " + source("validation") + "}\nsteps: 1\n");
  const Ended trained = run({"--standalone", (folder / "training.yaml").string(), "--storage",
                             (folder / "job").string()});
  ASSERT_EQ(trained.code, kSuccess) << trained.output;
  const std::vector<std::string> predict = {
      "predict", "--checkpoint", (folder / "job").string(), "--index", "1", "--score"};
  const auto predicted = [&](std::vector<std::string> more) {
    more.insert(more.begin(), predict.begin(), predict.end());
    return run(more);
  };
  const Ended json = predicted({"0", "-o", "json"});
  ASSERT_EQ(json.code, kSuccess) << json.output;
  const Json sample = Json::parse(json.output)["predictions"][0];
  const auto of_label = [&](const Json& object) {
    return fmt::format("\n  label: {}, x {:.0f} to {:.0f}, y ", object["class"].get<std::string>(),
                       64 * object["box"]["xmin"].get<double>(),
                       64 * object["box"]["xmax"].get<double>());
  };
  const Ended all = predicted({"0"});
  EXPECT_EQ(all.code, kSuccess);
  EXPECT_THAT(all.output,
              AllOf(HasSubstr(fmt::format("\nsample 1: {} objects (the labels have {})\n",
                                          sample["predicted"].size(), sample["objects"].size())),
                    HasSubstr(" with score "), HasSubstr(of_label(sample["objects"][0])),
                    Not(HasSubstr("{"))));
  const Ended none = predicted({"1"});
  EXPECT_EQ(none.code, kSuccess);
  EXPECT_THAT(none.output, AllOf(HasSubstr("\nsample 1: 0 objects (the labels have "),
                                 Not(HasSubstr(" with score "))));
}

TEST(CommandTest, HelpSaysWhatACheckpointMayBe) {
  for (const char* command : {"evaluate", "predict"}) {
    const Ended help = run({command, "--help"});
    EXPECT_EQ(help.code, kSuccess);
    EXPECT_THAT(help.output, AllOf(HasSubstr("A job's directory or a --storage folder"),
                                   HasSubstr("Example:\n  muster-trainer")));
  }
}

}  // namespace
}  // namespace muster::integration
