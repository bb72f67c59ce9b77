#include "trainer/host/team.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <string>
#include <thread>
#include <vector>

#include "common/error.h"

namespace muster::host {
namespace {

TEST(TeamThread, SharesCoverEverythingOnceInWholeGrains) {
  for (int64_t n : {0, 1, 15, 16, 17, 100, 784}) {
    for (int count : {1, 2, 3, 7}) {
      int64_t at = 0;
      for (int i = 0; i < count; ++i) {
        const TeamThread thread{i, count};
        EXPECT_EQ(thread.begin(n, 16), at);
        EXPECT_TRUE(at % 16 == 0 || at == n);
        at = thread.end(n, 16);
      }
      EXPECT_EQ(at, n);
    }
  }
}

// Counts go past 2^32 on the way: they begin a thousand before.
TEST(Team, WhatAMemberWroteBeforeABarrierIsSeenAfterItHoweverManyThereWere) {
  for (bool exclusive : {true, false}) {
    Team team(3, exclusive);
    std::vector<int64_t> written(3);
    std::vector<int64_t> wrong(3);
    for (int run = 0; run < 2000; ++run) {
      team.run([&](TeamThread thread) {
        const size_t own = static_cast<size_t>(thread.index);
        for (int64_t turn = 1; turn <= 2; ++turn) {
          written[own] = 2 * run + turn;
          team.barrier(thread);
          for (const int64_t value : written) wrong[own] += value != 2 * run + turn;
          team.barrier(thread);
        }
      });
    }
    EXPECT_EQ(wrong, std::vector<int64_t>(3));
    EXPECT_EQ(written, std::vector<int64_t>(3, 4000));
  }
}

TEST(Team, AMemberThatComesLateIsWaitedFor) {
  Team team(2, true);
  int late = 0;
  std::vector<int> seen(2);
  for (int run = 1; run <= 3; ++run) {
    team.run([&](TeamThread thread) {
      if (thread.index == 1) {
        // Far beyond any spin.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        late = run;
      }
      team.barrier(thread);
      seen[static_cast<size_t>(thread.index)] = late;
    });
    EXPECT_EQ(seen, std::vector<int>(2, run));
  }
}

TEST(Team, AloneTheCallerDoesAllTheWork) {
  Team team(1, true);
  int runs = 0;
  team.run([&](TeamThread thread) {
    team.barrier(thread);
    runs += thread.count;
  });
  EXPECT_EQ(runs, 1);
}

// Stacks that no address space holds make every new thread fail, as a limit on threads does.
TEST(Team, ThreadsThatTheSystemRefusesAreUnavailableAndNothingIsLeftRunning) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  std::string message;
  try {
    Team team(4, true);
  } catch (const Unavailable& error) {
    message = error.what();
  }
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_NE(message.find("cannot have 4 threads, only 1"), std::string::npos) << message;
  pthread_attr_destroy(&usual);
  pthread_attr_destroy(&huge);
}

}  // namespace
}  // namespace muster::host
