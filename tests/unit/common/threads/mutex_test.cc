#include "common/threads/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <stop_token>
#include <thread>

namespace muster {
namespace {

// Whether another thread can take the mutex.
bool is_free(Mutex& mutex) {
  const auto takes = [&] {
    if (!mutex.try_lock()) return false;
    mutex.unlock();
    return true;
  };
  return std::async(std::launch::async, takes).get();
}

class Counter {
 public:
  void add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
    stoppable_changed_.notify_all();
  }
  int wait() {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return count_ > 0; });
    return count_;
  }
  bool wait(const std::stop_token& stop) {
    MutexLock lock(mutex_);
    return stoppable_changed_.wait(lock, stop,
                                   [&]() MUSTER_REQUIRES(mutex_) { return count_ > 0; });
  }
  bool wait_for(std::chrono::milliseconds time) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, time, [&]() MUSTER_REQUIRES(mutex_) { return count_ > 0; });
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  StoppableConditionVariable stoppable_changed_;
  int count_ MUSTER_GUARDED_BY(mutex_) = 0;
};

TEST(MutexTest, IsHeldUntilTheLocksEndExceptBetweenUnlockAndLock) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(is_free(mutex));
    lock.unlock();
    EXPECT_TRUE(is_free(mutex));
    lock.lock();
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexTest, ALockTakesOverWhatIsHeld) {
  Mutex mutex;
  if (!mutex.try_lock()) FAIL() << "expected a free mutex, found it held";
  {
    const MutexLock lock(mutex, std::adopt_lock);
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexTest, AWaitLetsOthersTakeTheMutexUntilItsPredicateHolds) {
  Counter counter;
  EXPECT_FALSE(counter.wait_for(std::chrono::milliseconds(1)));
  std::jthread other([&] { counter.add(); });
  EXPECT_EQ(counter.wait(), 1);
  EXPECT_TRUE(counter.wait_for(std::chrono::milliseconds(0)));
}

TEST(MutexTest, AWaitEndsAtAStop) {
  Counter counter;
  std::stop_source stop;
  std::jthread other([&] { stop.request_stop(); });
  EXPECT_FALSE(counter.wait(stop.get_token()));
  counter.add();
  EXPECT_TRUE(counter.wait(stop.get_token()));
}

}  // namespace
}  // namespace muster
