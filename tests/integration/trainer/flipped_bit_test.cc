#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>

#include "common/system/descriptor.h"
#include "tests/integration/trainer/job.h"
#include "trainer/checkpoint/files/safetensors.h"
#include "trainer/checkpoint/store/store.h"

namespace muster::integration {
namespace {

namespace fs = std::filesystem;

constexpr char kTensor[] = "hidden_1/kernel";
constexpr size_t kPart = 256;  // bytes
// Sanitizers map terabytes of their own.
constexpr unsigned long kMostMapped = 1ul << 30;
// The learning rate changes no parameter, so that the test knows which bytes a process holds.
constexpr char kTraining[] =
    "optimizer: {name: sgd, learningRate: 1e-30}\n"
    "checkpoint: {everySteps: 100, everySeconds: null, keep: 200}\n";

// Returns the bytes of a part of the tensor that a checkpoint has. It is there in the file of the
// shard that has the tensor's first row.
std::string part_of(const fs::path& checkpoint) {
  for (const auto& file : fs::directory_iterator(checkpoint)) {
    if (file.path().extension() != ".safetensors") continue;
    const checkpoint::SafetensorsFile tensors(file.path());
    for (const auto& tensor : tensors.tensors())
      if (tensor.name == kTensor)
        return {reinterpret_cast<const char*>(tensor.values.data()), kPart};
  }
  ADD_FAILURE() << checkpoint << " has no " << kTensor;
  return "";
}

std::vector<fs::path> checkpoints(const Job& job) {
  std::vector<fs::path> folders;
  checkpoint::Store store(job.folder() / "checkpoints", 1);
  for (const auto& name : store.list())  // the newest first
    folders.insert(folders.begin(), job.folder() / "checkpoints" / name.text());
  return folders;
}

// Calls function(begin, end) for the stretches of a process's memory that it can write to and that
// are there: with a sanitizer it has mapped much more.
template <typename Function>
void for_memory(const std::string& proc, Function function) {
  static const auto page = static_cast<unsigned long>(sysconf(_SC_PAGESIZE));
  const Descriptor page_map(open((proc + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC));
  std::ifstream maps(proc + "/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char rights[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) != 3 || rights[1] != 'w' ||
        end - begin > kMostMapped)
      continue;
    std::vector<uint64_t> pages((end - begin) / page);
    const ssize_t size = pread(page_map.get(), pages.data(), pages.size() * sizeof(uint64_t),
                               static_cast<off_t>(begin / page * sizeof(uint64_t)));
    const bool is_known = size == static_cast<ssize_t>(pages.size() * sizeof(uint64_t));
    const auto is_there = [&](uint64_t entry) { return !is_known || entry >> 62 != 0; };
    for (auto at = std::ranges::find_if(pages, is_there); at != pages.end();) {
      const auto last = std::find_if_not(at, pages.end(), is_there);
      function(begin + static_cast<unsigned long>(at - pages.begin()) * page,
               begin + static_cast<unsigned long>(last - pages.begin()) * page);
      at = std::find_if(last, pages.end(), is_there);
    }
  }
}

// Flips one bit wherever the process holds these bytes. Returns how many times; 0 if it has ended.
// The search is not for the first byte, which may be zero as most of the memory is.
int flip_bit(Process& process, const std::string& bytes) {
  const std::boyer_moore_horspool_searcher searcher(bytes.begin(), bytes.end());
  process.signal(SIGSTOP);
  const std::string proc = "/proc/" + std::to_string(process.pid());
  const Descriptor memory(open((proc + "/mem").c_str(), O_RDWR | O_CLOEXEC));
  if (!memory && (errno == ENOENT || errno == ESRCH)) return 0;
  EXPECT_TRUE(memory) << proc;
  int flipped = 0;
  for_memory(proc, [&](unsigned long begin, unsigned long end) {
    std::string content(end - begin, '\0');
    const ssize_t size =
        pread(memory.get(), content.data(), content.size(), static_cast<off_t>(begin));
    content.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    const char other = static_cast<char>(bytes[0] ^ 1);
    for (auto at = std::search(content.begin(), content.end(), searcher); at != content.end();
         at = std::search(at + 1, content.end(), searcher)) {
      const auto place = begin + static_cast<unsigned long>(at - content.begin());
      flipped += pwrite(memory.get(), &other, 1, static_cast<off_t>(place)) == 1 ? 1 : 0;
    }
  });
  process.signal(SIGCONT);
  return flipped;
}

// Returns true once the log of one of these replicas has the text.
bool says(const Job& job, const std::string& text,
          const std::vector<Job::Replica>& any = {{"chief", 0}}) {
  return eventually([&] {
    return std::any_of(any.begin(), any.end(), [&](const Job::Replica& replica) {
      return times(job.log(replica.first, replica.second), text) > 0;
    });
  });
}

// Goes on with the job, in which a bit flips in a process, calls then(), and expects that no
// checkpoint has the bit, unless excused() says that the group could not know.
void flip_and_finish(
    Job& job, const std::string& role, int index, const std::function<void()>& then,
    const std::function<bool()>& excused = [] { return false; }) {
  ASSERT_TRUE(job.wait_for_checkpoints(2)) << job.log("chief", 0);
  const std::string before = part_of(checkpoints(job).front());
  ASSERT_GT(flip_bit(job.at(role, index), before), 0);
  then();
  job.expect_success();
  if (excused()) return;
  for (const fs::path& checkpoint : checkpoints(job))
    EXPECT_TRUE(part_of(checkpoint) == before) << checkpoint;
}

// Does so, and expects that the chief says what it restored.
void flip_and_finish(Job& job, const std::string& role, int index, const std::string& restored) {
  flip_and_finish(job, role, index,
                  [&] { EXPECT_TRUE(says(job, restored)) << job.log("chief", 0); });
}

constexpr char kRestored[] = "members opened from checkpoints/ckpt-";
constexpr char kOnlyRank2[] = "what rank 2 holds of generation ";
constexpr char kNamed[] = "rank 2 does not hold the state that most members hold";

TEST(FlippedBitTest, AMemberOfACollectiveIsNamedAndTheGroupGoesBack) {
  Job job("flipped-collective", long_training(kTraining), 0, 2);
  job.environment = kByTcp;
  job.start_all();
  flip_and_finish(job, "worker", 1, kRestored);
  EXPECT_TRUE(says(job, kNamed)) << job.log("chief", 0);
}

// Runs a job in which a bit of a member flips and another member is killed at once: the others may
// make no step before the next generation, whose members compare what they bring. Returns whether
// that one was named.
bool is_named_at_the_next_generation(int number) {
  std::string training = long_training(kTraining);
  training.replace(training.find("everySteps: 100"), 15, "everySteps: 1500");
  Job job("flipped-and-lost-" + std::to_string(number), training, 0, 2);
  job.environment = kByTcp;
  job.start_all();
  flip_and_finish(
      job, "worker", 1,
      [&] {
        job.kill("worker", 0);
        job.start("worker", 0);
      },
      [&] { return times(job.log("chief", 0), kOnlyRank2) > 0; });
  const std::string log = job.log("chief", 0);
  const bool named = times(log, kNamed) > 0;
  EXPECT_EQ(times(log, kRestored) > 0, named) << log;
  return named;
}

// A member that is a step behind when the other one is killed brings nothing: it takes the state of
// rank 0, and the bit is gone. Nor does rank 0 bring anything if it is the one behind: the newest
// state is there once only, and nobody can compare it.
TEST(FlippedBitTest, AMemberThatComesWithAnotherStateIsNamed) {
  constexpr int kTries = 10;
  int tries = 0;
  while (tries < kTries && !is_named_at_the_next_generation(tries) && !HasFailure()) ++tries;
  EXPECT_LT(tries, kTries) << "the member was a step behind each time";
}

// A bit is flipped again well before the states are compared again, and, on a busy machine too,
// long before the training ends.
std::string rarely_saved() {
  std::string training = long_training(kTraining);
  training.replace(training.find("epochs: 2"), 9, "epochs: 6");
  return training.replace(training.find("everySteps: 100"), 15, "everySteps: 500");
}

// Flips a bit of a process, whenever the group has gone back from the last one, until the process
// `ending` ends.
void flip_until_it_ends(Job& job, const Job::Replica& faulty, const Job::Replica& ending) {
  ASSERT_TRUE(job.wait_for_checkpoints(2)) << job.log("chief", 0);
  const std::string before = part_of(checkpoints(job).front());
  EXPECT_TRUE(eventually([&] {
    const auto begin = std::chrono::steady_clock::now();
    if (job.at(faulty.first, faulty.second).running())
      flip_bit(job.at(faulty.first, faulty.second), before);
    // The process stands still while its memory is searched, which takes long with a sanitizer.
    std::this_thread::sleep_for(std::max<std::chrono::nanoseconds>(
        (std::chrono::steady_clock::now() - begin) / 10, std::chrono::milliseconds(5)));
    return !job.at(ending.first, ending.second).running();
  })) << job.log("chief", 0);
  EXPECT_EQ(job.at(ending.first, ending.second).wait(), 71) << job.log(ending.first, ending.second);
  job.start(ending.first, ending.second);
  job.expect_success();
  for (const fs::path& checkpoint : checkpoints(job))
    EXPECT_TRUE(part_of(checkpoint) == before) << checkpoint;
}

TEST(FlippedBitTest, AMemberThatIsNamedThreeTimesInARowLeavesForAnotherMachine) {
  Job job("flipped-again", rarely_saved(), 0, 2);
  job.environment = kByTcp;
  job.start_all();
  flip_until_it_ends(job, {"worker", 1}, {"worker", 1});
  EXPECT_GT(
      times(job.log("worker", 1), "it is comparison 3 in a row in which this process is named"), 0u)
      << job.log("worker", 1);
}

TEST(FlippedBitTest, APsWhoseSecondCopyDiffersThreeTimesInARowLeaves) {
  Job job("flipped-shard-again", rarely_saved(), 2, 1);
  job.environment = {{"MUSTER_REPLICATION", "2"}};
  job.start_all();
  ASSERT_TRUE(says(job, "2 of 2 shards have a second copy")) << job.log("chief", 0);
  flip_until_it_ends(job, {"ps", 1}, {"ps", 0});
  for (const char* text : {"differ at step ", "differed in 3 comparisons in a row"})
    EXPECT_GT(times(job.log("ps", 0),
                    std::string("the two copies of shard 0, of ps 0 and ps 1, ") + text),
              0u)
        << job.log("ps", 0);
}

TEST(FlippedBitTest, TheTwoCopiesOfAShardAreNamedAndTheGroupGoesBack) {
  Job job("flipped-shard", long_training(kTraining), 2, 1);
  job.environment = {{"MUSTER_REPLICATION", "2"}, {"MUSTER_TLS", ""}};  // as good in plaintext
  job.start_all();
  ASSERT_TRUE(says(job, "2 of 2 shards have a second copy")) << job.log("chief", 0);
  flip_and_finish(job, "ps", 1, "opened from ckpt-");
  EXPECT_TRUE(says(job, "the two copies of a shard differ")) << job.log("chief", 0);
  // The ps that serves the shard compares. The next generation may open before the chief has the
  // answer.
  EXPECT_TRUE(says(job, "the two copies of shard ", {{"ps", 0}, {"ps", 1}}))
      << job.log("ps", 0) << job.log("ps", 1);
}

}  // namespace
}  // namespace muster::integration
