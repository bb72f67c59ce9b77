#include "trainer/loop/checkpoint_requests.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "common/job/checkpoint_request.h"
#include "common/system/file.h"
#include "common/threads/mutex.h"
#include "tests/unit/trainer/loop/support.h"

namespace muster::loop {
namespace {

// Keeps what was asked, and waits for as much.
class Asked {
 public:
  void add(const std::string& request) {
    const MutexLock lock(mutex_);
    requests_.push_back(request);
    changed_.notify_all();
  }
  // Returns the newest request once there are so many.
  std::string newest_of(size_t count) {
    MutexLock lock(mutex_);
    const bool enough =
        changed_.wait_for(lock, std::chrono::minutes(1),
                          [&]() MUSTER_REQUIRES(mutex_) { return requests_.size() >= count; });
    EXPECT_TRUE(enough);
    EXPECT_EQ(requests_.size(), count);
    return requests_.empty() ? "" : requests_.back();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<std::string> requests_ MUSTER_GUARDED_BY(mutex_);
};

TEST(CheckpointRequestsTest, EachNewTextOfTheFileIsOne) {
  const std::filesystem::path file = fresh_folder("request-file") / "request";
  Asked asked;
  const CheckpointRequests requests(file, [&](const std::string& text) { asked.add(text); });
  write_file_atomically(file, "first");
  EXPECT_EQ(asked.newest_of(1), "first");
  write_file_atomically(file, "");
  write_file_atomically(file, "second");
  EXPECT_EQ(asked.newest_of(2), "second");
  std::filesystem::remove(file);
  write_file_atomically(file, std::string(2 * kLongestRequest, 'x'));
  EXPECT_EQ(asked.newest_of(3), std::string(kLongestRequest, 'x'));
}

TEST(CheckpointRequestsTest, TheTextThatIsThereAtFirstIsOneToo) {
  const std::filesystem::path file = fresh_folder("request-there") / "request";
  write_file_atomically(file, "before");
  Asked asked;
  const CheckpointRequests requests(file, [&](const std::string& text) { asked.add(text); });
  EXPECT_EQ(asked.newest_of(1), "before");
}

TEST(CheckpointRequestsTest, WhatIsNoFileHoldsUpNothing) {
  const std::filesystem::path file = fresh_folder("request-pipe") / "request";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  Asked asked;
  const CheckpointRequests requests(file, [&](const std::string& text) { asked.add(text); });
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/zero", file);
  write_file_atomically(file, "after");
  EXPECT_EQ(asked.newest_of(1), "after");
}

}  // namespace
}  // namespace muster::loop
