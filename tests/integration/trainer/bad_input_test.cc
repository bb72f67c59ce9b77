#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/trainer/job.h"

namespace muster::integration {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// A process by itself on a training, in a folder of its own.
struct Alone {
  Alone(const std::string& name, const std::string& training, bool keep = false)
      : folder(scratch() / ("alone-" + name)) {
    if (!keep) fs::remove_all(folder);
    fs::create_directories(folder);
    write_file_atomically(folder / "training.yaml", training);
  }
  std::optional<int> run(const Process::Limits& limits = {}) {
    fs::remove(folder / "log");
    Process process({MUSTER_TRAINER, "--standalone", (folder / "training.yaml").string(),
                     "--storage", (folder / "job").string()},
                    more, folder / "log", limits);
    return process.wait();
  }
  std::string log() const { return read_file(folder / "log"); }
  const fs::path folder;
  std::map<std::string, std::string> more = {{"MUSTER_THREADS", "1"}};  // environment
};

TEST(BadInputTest, APeerOfAnotherJobIsRejectedAndTheJobGoesOn) {
  Job job("peers", small_training(), 1, 1);
  job.start("ps", 0);
  job.start("chief", 0);
  job.uid = "another";
  Process& stranger = job.start("worker", 0);
  EXPECT_EQ(stranger.wait(), kProtocol);
  EXPECT_THAT(job.log("worker", 0), HasSubstr("expected this job's uid"));
  job.uid = "uid-1";
  job.start("worker", 0);
  job.expect_success();
}

TEST(BadInputTest, AMemberOfAnotherTrainingIsRejected) {
  Job job("trainings", small_training(), 1, 1);
  job.start("ps", 0);
  job.start("chief", 0);
  const fs::path other = job.folder() / "other.yaml";
  write_file_atomically(other, small_training("seed: 2\n"));
  Process& stranger = job.start("worker", 0, {{"MUSTER_TRAINING", other.string()}});
  EXPECT_EQ(stranger.wait(), kProtocol);
  EXPECT_THAT(job.log("worker", 0), HasSubstr("training.seed: expected 1 (an integer), found 2"));
}

TEST(BadInputTest, MalformedTfConfigNamesTheField) {
  Job job("tf-config", small_training(), 1, 1);
  Process& chief = job.start("chief", 0, {{"TF_CONFIG", R"({"cluster": {"chief": ["x"]}})"}});
  EXPECT_EQ(chief.wait(), kBadConfig);
  EXPECT_THAT(job.log("chief", 0), HasSubstr("cluster.chief[0]"));
}

TEST(BadInputTest, APortInUseIsNamed) {
  Job job("port", small_training(), 1, 1);
  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  const std::string address = job.cluster["ps"][0];
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&where), sizeof(where)), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  EXPECT_EQ(job.start("ps", 0).wait(), kUnavailable);
  EXPECT_THAT(job.log("ps", 0), HasSubstr(address));
  close(taken);
}

TEST(BadInputTest, ADivergingGroupEndsWithItsCodeEverywhere) {
  Job job("diverges", small_training("optimizer: {name: sgd, learningRate: 1000000}\n"), 1, 1);
  job.start_all();
  EXPECT_EQ(job.at("chief", 0).wait(), kDiverged) << job.log("chief", 0);
  EXPECT_EQ(job.at("worker", 0).wait(), kDiverged) << job.log("worker", 0);
  EXPECT_THAT(job.log("chief", 0), HasSubstr("not finite"));
  EXPECT_FALSE(fs::exists(job.folder() / "result.json"));
}

TEST(BadInputTest, AMalformedTrainingSaysEverythingAtOnce) {
  Alone alone("yaml", "model: {name: mnist-mpl}\nbatchSize: many\nepoch: 3\n");
  EXPECT_EQ(alone.run(), kBadConfig);
  EXPECT_THAT(alone.log(),
              AllOf(HasSubstr("batchSize"), HasSubstr("epoch"), HasSubstr("mnist-mlp")));
}

TEST(BadInputTest, MissingDataIsNamed) {
  Alone alone("data",
              "model: {name: mnist-mlp}\nepochs: 1\n"
              "data: {train: {idx: {images: /nowhere/images, labels: /nowhere/labels}}}\n");
  EXPECT_EQ(alone.run(), kBadInput);
  EXPECT_THAT(alone.log(), HasSubstr("/nowhere/images"));
  EXPECT_FALSE(fs::exists(alone.folder / "job" / "checkpoints"));
}

TEST(BadInputTest, DataThatDoNotFitTheModelAreNamed) {
  Alone alone("shape",
              "model: {name: mnist-mlp}\nepochs: 1\n"
              "data: {train: {syntheticClasses: {samples: 10, shape: [3], classes: 10}}}\n");
  EXPECT_EQ(alone.run(), kBadConfig);
  EXPECT_THAT(alone.log(), HasSubstr("training.yaml:3: data.train.syntheticClasses.shape: expected "
                                     "samples of 784 elements, as the model mnist-mlp takes, found "
                                     "3 ([3])"));
}

TEST(BadInputTest, DataFilesThatDoNotFitAreToldWithTheLineOfTheTraining) {
  const std::string mnist = MUSTER_SOURCE_DIR "/examples/data/mnist/t10k-";
  Alone alone("files",
              "model: {layers: [{dense: {units: 11}}]}\nepochs: 1\ndata:\n  train:\n    take: "
              "20000\n    idx: {images: " +
                  mnist + "images-idx3-ubyte.gz, labels: " + mnist + "labels-idx1-ubyte.gz}\n");
  EXPECT_EQ(alone.run(), kBadInput);
  EXPECT_THAT(alone.log(), AllOf(HasSubstr("training.yaml:1: model.layers[0].dense.units: expected "
                                           "10 outputs, one for each class, found 11"),
                                 HasSubstr("training.yaml:5: data.train.take: expected from 1 to "
                                           "10000")));
}

TEST(BadInputTest, AWholeJobIsNotATraining) {
  Alone alone("job", "apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nspec: {}\n");
  EXPECT_EQ(alone.run(), kBadConfig);
  EXPECT_THAT(alone.log(), HasSubstr("expected a training block, found a whole TrainingJob"));
}

TEST(BadInputTest, SeveralProblemsAreSeveralLogLines) {
  Alone alone("lines", "model: {nmae: x}\nbatchSize: x\ndata: {train: {}}\nepochs: 1\n");
  EXPECT_EQ(alone.run(), kBadConfig);
  std::istringstream log(alone.log());
  int errors = 0;
  for (std::string line; std::getline(log, line);) {
    EXPECT_THAT(line, HasSubstr("error"));
    ++errors;
  }
  EXPECT_EQ(errors, 3);
}

TEST(BadInputTest, AFolderThatCannotBeWrittenIsNamed) {
  Alone alone("folder", small_training());
  write_file_atomically(alone.folder / "job", "a file where the folder should be");
  EXPECT_EQ(alone.run(), kBadConfig) << "no restart helps";
  EXPECT_THAT(alone.log(), HasSubstr((alone.folder / "job").string()));
}

TEST(BadInputTest, AStorageThatCannotKeepCheckpointsIsFoundBeforeTheFirstStep) {
  Alone alone("no-rename", small_training());
  alone.more = {{"LD_PRELOAD", MUSTER_STORAGE_FAULTS},
                {"MUSTER_FAULTS", (alone.folder / "faults").string()},
                {"MUSTER_FAULTS_BELOW", (alone.folder / "job").string()},
                {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
  const std::pair<const char*, const char*> faults[] = {{"no rename", "cannot write "},
                                                        {"hidden ckpt-trial", "cannot read "}};
  for (const auto& [fault, why] : faults) {
    write_file_atomically(alone.folder / "faults", fault);
    EXPECT_EQ(alone.run(), kBadConfig) << "no restart helps";
    EXPECT_THAT(alone.log(), HasSubstr("expected a storage that can keep checkpoints, found one "
                                       "that cannot: " +
                                       std::string(why)));
    EXPECT_FALSE(fs::exists(alone.folder / "job" / "checkpoints")) << fault;
  }
  write_file_atomically(alone.folder / "faults", "");
  EXPECT_EQ(alone.run(), kSuccess) << alone.log();
}

// Every file may only grow to 8 KiB: the checkpoint does not fit, and waiting does not help.
TEST(BadInputTest, ALimitOnFilesIsSaidAndLeavesNothingHalfWritten) {
  Alone alone("full", small_training());
  Process::Limits limits;
  limits.file_bytes = 8192;
  EXPECT_EQ(alone.run(limits), kCannotWrite);
  for (const auto& entry : fs::directory_iterator(alone.folder / "job" / "checkpoints"))
    ADD_FAILURE() << "left behind: " << entry.path();
  EXPECT_FALSE(fs::exists(alone.folder / "job" / "result.json"));
  EXPECT_EQ(alone.run(), kSuccess) << alone.log();
}

TEST(BadInputTest, ADamagedNewestCheckpointFallsBackToTheOneBefore) {
  Alone alone("damaged", small_training("checkpoint: {everySteps: 500, keep: 50}\n"));
  ASSERT_EQ(alone.run(), kSuccess) << alone.log();
  const Json first = Document::load(alone.folder / "job" / "result.json").value();
  const fs::path newest = alone.folder / "job" / first["checkpoint"].get<std::string>();
  {
    std::fstream file(newest / "model-00000-of-00001.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    file.put('\x7f');
  }
  ASSERT_EQ(alone.run(), kSuccess) << alone.log();
  EXPECT_THAT(alone.log(),
              AllOf(HasSubstr(newest.filename().string()), HasSubstr("going on from ckpt-")));
  const Json second = Document::load(alone.folder / "job" / "result.json").value();
  EXPECT_EQ(second["weightsDigest"], first["weightsDigest"]);
}

TEST(BadInputTest, AWrongCommandLineIsUsage) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--no-such"},
        {"evalute"},
        {"evaluate"},
        {"predict", "--checkpoint", "x", "--data", "train"}}) {
    std::vector<std::string> command = {MUSTER_TRAINER};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Process process(command, {}, "/dev/null", {});
    EXPECT_EQ(process.wait(), kUsage);
  }
}

}  // namespace
}  // namespace muster::integration
