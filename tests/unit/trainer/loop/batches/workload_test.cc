#include "trainer/loop/batches/workload.h"

#include <gmock/gmock.h>

#include "common/error.h"

namespace muster::loop {
namespace {

spec::TrainingSpec spec_of(int64_t batch, std::optional<uint64_t> epochs,
                           std::optional<uint64_t> steps = {}, int accumulation = 1) {
  spec::TrainingSpec spec;
  spec.batch_size = batch;
  spec.epochs = epochs;
  spec.steps = steps;
  spec.gradient_accumulation = accumulation;
  return spec;
}

TEST(WorkloadTest, EveryBatchOfAnEpochIsComputedOnceByTheGroup) {
  struct Case {
    uint64_t samples;
    int64_t batch;
    int members;
    int accumulation;
    bool drop;
  };
  for (const Case& c :
       {Case{100, 10, 1, 1, false}, Case{101, 10, 3, 1, false}, Case{101, 10, 3, 1, true},
        Case{95, 10, 2, 3, false}, Case{7, 10, 4, 2, false}}) {
    spec::TrainingSpec spec = spec_of(c.batch, 2, {}, c.accumulation);
    spec.data.drop_remainder = c.drop;
    const Workload workload(spec, c.samples, c.members, true);
    checkpoint::Position position;
    std::map<std::pair<uint64_t, uint64_t>, int> seen;
    uint64_t steps = 0;
    const uint64_t total = workload.total_steps(position);
    while (!workload.finished(position)) {
      EXPECT_EQ(workload.total_steps(position), total);
      for (int rank = 0; rank < c.members; ++rank) {
        const Work work = workload.part_of(position, rank);
        for (int i = 0; i < work.batches(); ++i)
          if (work.first_batch() + i < workload.batches_per_epoch())
            ++seen[{work.epoch(), work.first_batch() + i}];
      }
      workload.advance(position);
      ++steps;
    }
    EXPECT_EQ(steps, total);
    EXPECT_EQ(seen.size(), 2 * workload.batches_per_epoch());
    for (const auto& [batch, times] : seen) EXPECT_EQ(times, 1);
  }
}

TEST(WorkloadTest, StepsEndWithinAnEpoch) {
  const Workload workload(spec_of(10, {}, 7), 30, 1, false);
  checkpoint::Position position;
  for (int i = 0; i < 7; ++i) {
    EXPECT_FALSE(workload.finished(position));
    workload.advance(position);
  }
  EXPECT_TRUE(workload.finished(position));
  EXPECT_EQ(position.epoch, 2u);
  EXPECT_EQ(position.next_batch, 1u);
}

TEST(WorkloadTest, TicketsCoverTheEpochs) {
  spec::TrainingSpec spec = spec_of(10, 2, {}, 2);
  spec.policy = spec::SyncPolicy::async;
  const Workload workload(spec, 45, 3, true);
  EXPECT_EQ(workload.tickets_per_epoch(), 3u);
  EXPECT_EQ(workload.total_tickets(), 6u);
  const Work work = workload.ticket(4);
  EXPECT_EQ(work.epoch(), 1u);
  EXPECT_EQ(work.first_batch(), 2u);
  checkpoint::Position position;
  position.epoch = 2;
  EXPECT_TRUE(workload.finished(position));
  position.outstanding = {5};
  EXPECT_FALSE(workload.finished(position));
}

TEST(WorkloadTest, ATicketIsForAllDevicesOfAProcess) {
  spec::TrainingSpec spec = spec_of(10, 1, {}, 2);
  spec.policy = spec::SyncPolicy::async;
  spec.devices = 3;
  const Workload workload(spec, 170, 6, true);  // 17 batches, 6 of a ticket
  ASSERT_EQ(workload.total_tickets(), 3u);
  std::vector<uint64_t> first;
  for (uint64_t ticket = 0; ticket < 3; ++ticket)
    for (int device = 0; device < 3; ++device) {
      const Work work = workload.ticket(ticket, Turn{device, 1, 3});
      EXPECT_EQ(work.batches(), 2);
      EXPECT_EQ(work.ticket, ticket);
      first.push_back(work.first_batch());
    }
  EXPECT_THAT(first, testing::ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16));
}

TEST(WorkloadTest, NoStepAtAllIsRefused) {
  spec::TrainingSpec spec = spec_of(10, 1);
  spec.data.drop_remainder = true;
  EXPECT_THROW(Workload(spec, 9, 1, false), Invalid);
  EXPECT_THROW(Workload(spec_of(10, 1), 0, 1, false), Invalid);
}

}  // namespace
}  // namespace muster::loop
