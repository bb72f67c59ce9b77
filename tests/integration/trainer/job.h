#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/documents/document.h"
#include "tests/integration/trainer/process.h"

namespace muster::integration {

// What is trained in most tests: a small classification, 20,000 samples in batches of 16. Over in
// less than a checkpoint takes.
std::string small_training(const std::string& more = "", int epochs = 2);
// The same in batches of 2, twice: long enough to be disturbed, so that what a disk takes for a
// checkpoint is a small part of it.
std::string long_training(const std::string& more = "");

// How often a log says something.
size_t times(const std::string& log, const std::string& text);

// A parameter-server job as an operator would start it, a folder and an environment for each
// replica; but nobody restarts anything except the test.
class Job {
 public:
  using Replica = std::pair<std::string, int>;
  using Environment = std::map<std::string, std::string>;

  // A folder of its own below the temporary one, emptied unless `keep`.
  Job(const std::string& name, const std::string& training, int ps, int workers,
      bool evaluator = false, bool keep = false);

  Process& start(const std::string& role, int index, const Environment& more = {},
                 const Process::Limits& limits = {});
  void start_all();
  Process& at(const std::string& role, int index) { return *replicas_.at({role, index}); }
  // As an out-of-memory kill: at once, and seen to be over.
  void kill(const std::string& role, int index);
  // It goes on, but is no longer the job's.
  std::unique_ptr<Process> release(const std::string& role, int index) {
    return std::move(replicas_.at({role, index}));
  }
  // Runs the job to its end; after the first checkpoint a replica is killed and started again.
  void run_losing(const std::string& role);
  // Every replica but the ps ends with 0; then the ps end when asked to.
  void expect_success();
  // The same where the chief may finish alone, before others are back: they are ended, as the
  // operator does.
  void expect_chief_success();

  const std::filesystem::path& folder() const { return folder_; }
  // The key pair by which its replicas know each other.
  std::filesystem::path keys() const { return folder_ / "tls"; }
  std::string log(const std::string& role, int index) const;
  Json result() const;
  Json evaluation() const;  // of the result's step
  bool wait_for_checkpoints(size_t count) const;
  Json cluster;
  std::string uid = "uid-1";
  std::vector<std::string> launcher;  // a command that the trainer's is an argument of
  Environment environment;            // of every replica, besides what an operator gives each

 private:
  std::filesystem::path folder_;
  std::map<std::string, int> counts_;
  std::map<Replica, int> attempts_;
  std::map<Replica, std::unique_ptr<Process>> replicas_;
};

// Expects the same steps, weights to the bit and loss as of a job that `expected` is the result of.
void expect_same(const Job& job, const Json& expected);

// By TCP the members of a collective hold a state each.
inline const Job::Environment kByTcp = {{"MUSTER_SHARED_MEMORY", "0"}};

}  // namespace muster::integration
