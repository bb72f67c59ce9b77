#include "operator/kube/cluster/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>

namespace muster::kube {
namespace {

TEST(InParallel, DoesEachOnceAndNeverMoreThanTheLimitAtATime) {
  std::mutex mutex;
  std::multiset<size_t> done;
  int now = 0, most = 0;
  in_parallel(50, 8, [&](size_t i) {
    {
      const std::lock_guard lock(mutex);
      most = std::max(most, ++now);
    }
    const std::lock_guard lock(mutex);
    done.insert(i);
    --now;
  });
  EXPECT_EQ(done.size(), 50U);
  EXPECT_EQ(std::set<size_t>(done.begin(), done.end()).size(), 50U);
  EXPECT_LE(most, 8);
}

TEST(InParallel, ARefusalOfTheFirstIsTheOnlyCall) {
  std::atomic<int> calls = 0;
  EXPECT_THROW(in_parallel(100, 16,
                           [&](size_t) {
                             ++calls;
                             throw std::runtime_error("quota");
                           }),
               std::runtime_error);
  EXPECT_EQ(calls, 1);
}

TEST(InParallel, BeginsNothingAfterAFailureAndThrowsTheFirst) {
  std::atomic<int> calls = 0;
  try {
    in_parallel(100, 4, [&](size_t i) {
      ++calls;
      if (i >= 4) throw std::runtime_error(std::to_string(i));
    });
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "4");
  }
  EXPECT_EQ(calls, 7);  // 1 + 2 + 4
}

TEST(InParallel, BeginsNothingThatIsWantedNoMore) {
  std::atomic<int> calls = 0;
  in_parallel(
      100, 4, [&](size_t) { ++calls; }, [&] { return calls < 3; });
  EXPECT_EQ(calls, 3);  // 1 + 2
}

TEST(InParallel, NothingToDo) {
  in_parallel(0, 4, [](size_t) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace muster::kube
