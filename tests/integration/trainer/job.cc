#include "tests/integration/trainer/job.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "common/net/key_pair.h"
#include "common/system/file.h"
#include "tests/unit/common/net/listener.h"

namespace muster::integration {

namespace fs = std::filesystem;

std::string small_training(const std::string& more, int epochs) {
  return R"(
model:
  layers:
    - dense: {name: hidden_1, units: 64, activation: relu}
    - dense: {name: logits, units: 10}
data:
  train: {syntheticClasses: {samples: 20000, shape: [64], classes: 10}}
  validation: {syntheticClasses: {samples: 500, shape: [64], classes: 10}}
  test: {syntheticClasses: {samples: 500, shape: [64], classes: 10}}
batchSize: 16
epochs: )" +
         std::to_string(epochs) + "\n" + more;
}

std::string long_training(const std::string& more) {
  std::string text = small_training(more);
  text.replace(text.find("batchSize: 16"), 13, "batchSize: 2");
  return text;
}

size_t times(const std::string& log, const std::string& text) {
  size_t count = 0;
  for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++count;
  return count;
}

Job::Job(const std::string& name, const std::string& training, int ps, int workers, bool evaluator,
         bool keep)
    : folder_(scratch() / name) {
  if (!keep) fs::remove_all(folder_);
  fs::create_directories(folder_);
  write_file_atomically(folder_ / "training.yaml", training);
  if (!fs::exists(keys())) {
    fs::create_directories(keys());
    write_key_pair(keys(), make_key_pair());
  }
  counts_ = {{"ps", ps}, {"chief", 1}, {"worker", workers}};
  for (const auto& [role, count] : counts_)
    for (int i = 0; i < count; ++i)
      cluster[role].push_back("127.0.0.1:" + std::to_string(free_port()));
  if (evaluator) counts_["evaluator"] = 1;
}

Process& Job::start(const std::string& role, int index, const Environment& more,
                    const Process::Limits& limits) {
  const int attempt = attempts_[{role, index}]++;
  Environment environment = {
      {"TF_CONFIG",
       Json{{"cluster", cluster}, {"task", {{"type", role}, {"index", index}}}}.dump()},
      {"MUSTER_JOB", "test"},
      {"MUSTER_JOB_UID", uid},
      {"MUSTER_ROLE", role},
      {"MUSTER_INDEX", std::to_string(index)},
      {"MUSTER_ATTEMPT", std::to_string(attempt)},
      {"MUSTER_REPLICAS", Json(counts_).dump()},
      {"MUSTER_STORAGE", folder_.string()},
      {"MUSTER_TLS", keys().string()},
      {"MUSTER_TRAINING", (folder_ / "training.yaml").string()},
      {"MUSTER_THREADS", "1"}};
  for (const auto& [key, value] : this->environment) environment.insert_or_assign(key, value);
  for (const auto& [key, value] : more) environment[key] = value;
  std::vector<std::string> command = launcher;
  command.emplace_back(MUSTER_TRAINER);
  auto& replica = replicas_[{role, index}];
  replica.reset();
  replica = std::make_unique<Process>(
      command, environment, folder_ / (role + "-" + std::to_string(index) + ".log"), limits);
  return *replica;
}

void Job::start_all() {
  for (const auto& [role, count] : counts_)
    for (int i = 0; i < count; ++i) start(role, i);
}

void Job::kill(const std::string& role, int index) {
  at(role, index).signal(SIGKILL);
  at(role, index).wait();
}

void Job::expect_success() {
  for (auto& [replica, process] : replicas_) {
    if (replica.first == "ps") continue;
    EXPECT_EQ(process->wait(), 0) << replica.first << " " << replica.second << ":\n"
                                  << log(replica.first, replica.second);
  }
  for (auto& [replica, process] : replicas_) {
    if (replica.first != "ps") continue;
    process->signal(SIGTERM);
    EXPECT_EQ(process->wait(), 0) << log("ps", replica.second);
  }
}

void Job::expect_chief_success() {
  EXPECT_EQ(at("chief", 0).wait(), 0) << log("chief", 0);
  for (auto& [replica, process] : replicas_) {
    if (replica.first == "chief") continue;
    process->signal(SIGTERM);
    const std::optional<int> code = process->wait();
    EXPECT_TRUE(code == 0 || code == 143) << log(replica.first, replica.second);
  }
}

std::string Job::log(const std::string& role, int index) const {
  return read_file(folder_ / (role + "-" + std::to_string(index) + ".log"));
}

Json Job::result() const {
  return Document::load(folder_ / "result.json").value();
}

Json Job::evaluation() const {
  const std::string step = result()["step"].dump();
  return Document::load(folder_ / "evaluations" / (step + ".json")).value();
}

void Job::run_losing(const std::string& role) {
  start_all();
  ASSERT_TRUE(wait_for_checkpoints(1));
  kill(role, 0);
  start(role, 0);
  expect_success();
}

bool Job::wait_for_checkpoints(size_t count) const {
  return eventually([&] {
    size_t found = 0;
    std::error_code error;
    for (fs::directory_iterator entry(folder_ / "checkpoints", error), end; entry != end;
         entry.increment(error)) {
      if (error) break;
      const std::string name = entry->path().filename();
      found += name.starts_with("ckpt-") && name.find(".tmp") == std::string::npos;
    }
    return found >= count;
  });
}

void expect_same(const Job& job, const Json& expected) {
  for (const char* field : {"step", "weightsDigest", "trainLoss"})
    EXPECT_EQ(job.result()[field], expected[field]) << field;
}

}  // namespace muster::integration
