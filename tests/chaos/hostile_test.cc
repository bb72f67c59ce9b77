#include <gtest/gtest.h>

#include <optional>

#include "tests/chaos/chaos_job.h"
#include "tests/chaos/hostile_peer.h"
#include "tests/slowdown.h"

namespace muster::chaos {
namespace {

constexpr bool kMemoryIsMuster = kSlowdown == 1;  // else most is the sanitizer's
constexpr long kMostMore = 96;                    // MiB

using Peaks = std::map<Replica, long>;

// Runs the job until it ends, or for so long; adds the memory that it takes to the peaks.
void run(ChaosJob& job, Peaks& peaks, std::optional<seconds> most = {}) {
  const auto begun = Clock::now();
  while (!job.finished() && (!most || Clock::now() - begun < *most)) {
    for (const auto& [replica, peak] : job.peak_memory())
      peaks[replica] = std::max(peaks[replica], peak);
    job.run_for(0.02);
  }
}

// With so many ps; none: of a collective whose members reach each other by TCP. The stranger has no
// key; in plaintext none is needed.
class HostileTest : public ::testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(HostileTest, BytesAtEveryPortCostNoBitNoRestartAndNoMemory) {
  Chance chance;
  Shape shape;
  std::tie(shape.ps, shape.plaintext) = GetParam();
  shape.http = true;
  shape.grpc_only = true;
  Peaks calm;
  std::chrono::duration<double> calm_seconds{};
  const auto run_calmly = [&] {
    ChaosJob job("calm", chance, shape);
    const auto begun = Clock::now();
    job.start();
    ASSERT_NO_THROW(run(job, calm));
    calm_seconds = Clock::now() - begun;
    expect_undisturbed_end(job);
  };
  run_calmly();
  if (const auto hostile = Amount::get().hostile; hostile && *hostile > calm_seconds) {
    shape.epochs *= 1 + static_cast<int>(*hostile / calm_seconds);
    run_calmly();
  }
  ChaosJob job("hostile", chance, shape);
  Peaks peaks;
  std::chrono::duration<double> attack_seconds{};
  {
    const HostilePeer stranger(job.ports(), Amount::get().seed);
    const auto begun = Clock::now();
    job.start();
    ASSERT_NO_THROW(run(job, peaks, Amount::get().hostile));
    attack_seconds = Clock::now() - begun;
  }
  ASSERT_NO_THROW(run(job, peaks));
  expect_undisturbed_end(job);
  // In plaintext it came through to where messages are read.
  const auto reached = [&](const Replica& replica, const char* text) {
    return job.log(replica).find(text) != std::string::npos;
  };
  EXPECT_EQ(reached({"chief", 0}, "a peer may not join"), shape.plaintext);
  if (shape.ps > 0) {
    EXPECT_EQ(reached({"ps", 0}, "a member was rejected"), shape.plaintext);
  }
  long most_more = 0;
  for (const Replica& replica : job.replicas()) {
    most_more = std::max(most_more, peaks[replica] - calm[replica]);
    EXPECT_EQ(job.starts(replica), 1) << job.log(replica) << job.story();
    if (kMemoryIsMuster) {
      EXPECT_LT(peaks[replica], calm[replica] + kMostMore)
          << replica.first << replica.second << ", in MiB";
    }
  }
  std::cout << "hostile: " << attack_seconds.count() << " s, " << most_more << " MiB more"
            << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostileTest,
                         ::testing::Combine(::testing::Values(2, 0), ::testing::Bool()),
                         [](const auto& info) {
                           const std::string kind =
                               std::get<0>(info.param) > 0 ? "ps" : "collective";
                           return kind + (std::get<1>(info.param) ? "InPlaintext" : "");
                         });

}  // namespace
}  // namespace muster::chaos
