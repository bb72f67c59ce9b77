#include "operator/local/hosts/each_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "common/system/file.h"
#include "operator/local/hosts/refusals.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::local {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EachHost, AreWorkedForAtTheSameTime) {
  std::latch both(2);
  std::atomic<int> calls = 0;
  const auto reasons = for_each_host(
      2, 8, [&](size_t) { both.arrive_and_wait(); }, [&] { ++calls; });
  EXPECT_THAT(reasons, ElementsAre("", ""));
}

TEST(EachHost, MoreThanAreWorkedForAtATimeAreAllWorkedFor) {
  std::atomic<size_t> sum = 0;
  EXPECT_EQ(for_each_host(
                100, 8, [&](size_t i) { sum += i; }, [] {})
                .size(),
            100u);
  EXPECT_EQ(sum, 99u * 100 / 2);
  EXPECT_THAT(for_each_host(
                  0, 8, [](size_t) { FAIL(); }, [] {}),
              ElementsAre());
}

TEST(EachHost, WhyOneFailsIsReturnedAsOneLine) {
  const auto reasons = for_each_host(
      3, 8,
      [](size_t i) {
        if (i == 1) throw Unavailable("no room:\n\x1b[2J" + std::string(10'000, 'x'));
      },
      [] {});
  EXPECT_THAT(reasons, ElementsAre("", HasSubstr("no room:  [2Jxxx"), ""));
  EXPECT_LT(reasons[1].size(), 1000u);
  EXPECT_EQ(unusable({"rack-1", "", "", 1, ""}, "no room"), "the host rack-1 is not used: no room");
}

TEST(EachHost, ABrokenSessionIsToldWithItsLastWords) {
  const auto talk = [](const std::string& script) {
    talk_to_host({"sh", "-c", script}, "sh", [](Session&, CopyWire& wire) { wire.hear(); });
  };
  EXPECT_EQ(
      test::error_of<Unavailable>([&] { talk("echo first >&2; echo last words >&2; exit 7"); }),
      "the connection has ended; ssh or sh has ended with 7: last words");
  EXPECT_EQ(test::error_of<Unavailable>(
                [&] { talk("echo half; echo 'Connection reset by a' >&2; exit 255"); }),
            "the connection has ended; ssh or sh has ended with 255: Connection reset by a")
      << "it had been let in";
}

// OpenSSH 9.2 says this where a server refuses it because of MaxStartups.
constexpr const char* kRefused =
    "if [ $n -lt 3 ]; then echo 'kex_exchange_identification: Connection reset by peer' >&2; "
    "echo 'Connection reset by 10.0.0.1 port 22' >&2; exit 255; fi; ";

TEST(EachHost, ARefusedSessionIsBegunAgain) {
  const test::TemporaryFolder folder;
  const std::string script = "cd '" + folder.path().string() +
                             "'; n=$(cat n || echo 0); echo $((n + 1)) >n; " + kRefused +
                             "printf 'hello\\0'";
  std::string heard;
  talk_to_host({"sh", "-c", script}, "sh", [&](Session&, CopyWire& wire) { heard = wire.hear(); });
  EXPECT_EQ(heard, "hello");
  EXPECT_EQ(read_file(folder.path() / "n"), "4\n");
}

TEST(EachHost, OnlyRefusalsAreTriedAgainAndNotForEver) {
  const std::string words = "Connection closed by 10.0.0.1 port 22";
  Refusals refusals;
  for (int i = 0; i < Refusals::kMost; ++i) {
    const auto pause = refusals.pause_after(255, words);
    ASSERT_TRUE(pause) << i;
    EXPECT_GE(pause->count(), i < 3 ? 200 << i : 1600);
    EXPECT_LT(pause->count(), i < 3 ? 400 << i : 3200);
  }
  EXPECT_FALSE(refusals.pause_after(255, words));
  EXPECT_FALSE(Refusals().pause_after(1, words));
  for (const char* other : {"", "root@10.0.0.1: Permission denied (publickey).",
                            "ssh: connect to host 10.0.0.1 port 22: Connection refused",
                            "Host key verification failed."})
    EXPECT_FALSE(Refusals().pause_after(255, other)) << other;
}

}  // namespace
}  // namespace muster::local
