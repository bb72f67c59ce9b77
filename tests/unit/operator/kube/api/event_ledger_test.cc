#include "operator/kube/api/event_ledger.h"

#include <gmock/gmock.h>

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

const EventSubject kJob{"muster.dev/v1alpha1", "TrainingJob", "team", "mnist", "u1"};

EventText text(const std::string& message) {
  return {false, "ReplicaFailed", message};
}

TEST(EventLedger, WritesTheFirstAtOnceAndRepetitionsTogether) {
  EventLedger ledger;
  const Time start(1000s);
  EXPECT_EQ(ledger.take(start), std::nullopt);
  EXPECT_EQ(ledger.next(), std::nullopt);
  ledger.record(kJob, text("worker 0"), start);
  const auto first = ledger.take(start);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->unwritten, 1);
  EXPECT_TRUE(first->first_time);
  for (int i = 1; i <= 5; ++i) ledger.record(kJob, text("worker 0"), start + i * 1s);
  EXPECT_EQ(ledger.take(start + 9s), std::nullopt);
  EXPECT_EQ(ledger.next(), start + 10s);
  const auto again = ledger.take(start + 10s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->unwritten, 5);
  EXPECT_FALSE(again->first_time);
  EXPECT_EQ(again->first, start);
  EXPECT_EQ(again->last, start + 5s);
  EXPECT_EQ(again->name, first->name);
  EXPECT_EQ(ledger.next(), std::nullopt);
}

TEST(EventLedger, NamesAreOfTheThingAndTheSameInEveryProcess) {
  const auto name_of = [](const EventSubject& subject, const EventText& text) {
    EventLedger ledger;
    ledger.record(subject, text, Time(1s));
    return ledger.take(Time(1s))->name;
  };
  const std::string name = name_of(kJob, text("a"));
  EXPECT_EQ(name, name_of(kJob, text("a")));
  EXPECT_THAT(name, ::testing::MatchesRegex("mnist\\.[0-9a-f]{16}"));
  EXPECT_NE(name, name_of(kJob, text("b")));
  EXPECT_NE(name, name_of(kJob, {true, "ReplicaFailed", "a"}));
  EXPECT_NE(name, name_of(kJob, {false, "ReplicaFaile", "da"}));
  EventSubject recreated = kJob;
  recreated.uid = "u2";
  EXPECT_NE(name, name_of(recreated, text("a")));
}

TEST(EventLedger, CutsLongMessagesInTheirMiddle) {
  EventLedger ledger;
  ledger.record(kJob, text("what: " + std::string(1024, 'x') + " the cause"), Time(1s));
  const std::string cut = ledger.take(Time(1s))->text.message;
  EXPECT_EQ(cut.size(), 1024U);
  EXPECT_THAT(
      cut, ::testing::AllOf(::testing::StartsWith("what: x"), ::testing::EndsWith("x the cause")));
  ledger.record(kJob, text(std::string(1024, 'y')), Time(1s));
  EXPECT_EQ(ledger.take(Time(1s))->text.message.size(), 1024U);
}

TEST(EventLedger, KeepsToItsRate) {
  EventLimits limits;
  limits.burst = 3;
  limits.per_second = 2;
  EventLedger ledger(limits);
  for (int i = 0; i < 10; ++i) ledger.record(kJob, text(std::to_string(i)), Time(10s));
  const auto written = [&](Time now) {
    int count = 0;
    while (ledger.take(now)) ++count;
    return count;
  };
  EXPECT_EQ(written(Time(10s)), 3);
  EXPECT_EQ(ledger.next(), Time(10'500ms));
  EXPECT_EQ(written(Time(10'500ms)), 1);
  EXPECT_EQ(written(Time(11'500ms)), 2);
  EXPECT_EQ(written(Time(100s)), 3);
}

TEST(EventLedger, WhatWaitsAndWhatIsRememberedHasALimit) {
  EventLimits limits;
  limits.waiting = 2;
  limits.remembered = 3;
  using Recorded = EventLedger::Recorded;
  EventLedger ledger(limits);
  EXPECT_EQ(ledger.record(kJob, text("a"), Time(1s)), Recorded::waits);
  EXPECT_EQ(ledger.record(kJob, text("b"), Time(2s)), Recorded::waits);
  EXPECT_EQ(ledger.record(kJob, text("c"), Time(3s)), Recorded::dropped);
  EXPECT_EQ(ledger.record(kJob, text("a"), Time(3s)), Recorded::counted);  // it waits already
  EXPECT_TRUE(ledger.take(Time(3s)));
  EXPECT_TRUE(ledger.take(Time(3s)));
  EXPECT_EQ(ledger.record(kJob, text("c"), Time(4s)), Recorded::waits);
  EXPECT_TRUE(ledger.take(Time(4s)));
  EXPECT_EQ(ledger.record(kJob, text("d"), Time(5s)),
            Recorded::waits);  // b has not happened for longest
  EXPECT_TRUE(ledger.take(Time(5s)));
  EXPECT_EQ(ledger.record(kJob, text("b"), Time(6s)), Recorded::waits);
  EXPECT_TRUE(ledger.take(Time(6s))->first_time);
}

TEST(EventLedger, WhatFailedComesAgainAndNotForEver) {
  EventLedger ledger;
  ledger.record(kJob, text("a"), Time(0s));
  auto write = ledger.take(Time(0s));
  ledger.record(kJob, text("a"), Time(1s));
  ledger.failed(*write, Time(2s));
  write = ledger.take(Time(60s));
  ASSERT_TRUE(write);
  EXPECT_EQ(write->unwritten, 2);
  EXPECT_TRUE(write->first_time);
  ledger.failed(*write, Time(60s));
  write = ledger.take(Time(120s));
  ASSERT_TRUE(write);
  ledger.failed(*write, Time(120s));
  EXPECT_EQ(ledger.take(Time(600s)), std::nullopt);
}

}  // namespace
}  // namespace muster::kube
