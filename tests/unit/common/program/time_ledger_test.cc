#include "common/program/time_ledger.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/documents/json.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(TimeLedger, CountsEachUseWhileItLasts) {
  const auto begun = std::chrono::steady_clock::now();
  const TimeLedger ledger;
  std::this_thread::sleep_for(20ms);
  {
    const Spending computing(TimeUse::computing);
    std::this_thread::sleep_for(20ms);
    const Spending saving(TimeUse::checkpoint);
    std::this_thread::sleep_for(20ms);
  }
  const TimeSpent spent = ledger.spent();
  const auto lasted = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun);
  for (const TimeUse use : {TimeUse::starting, TimeUse::computing, TimeUse::checkpoint})
    EXPECT_GE(spent[use], 0.02) << name_of(use);
  EXPECT_LE(spent.total(), lasted.count());
  EXPECT_EQ(string_or(ledger.json(), "use", ""), "starting");
}

TEST(TimeLedger, MovesNoMoreThanThereIs) {
  TimeLedger ledger;
  ledger.change(TimeUse::computing);
  std::this_thread::sleep_for(10ms);
  ledger.change(TimeUse::exporting);
  const double computed = ledger.spent()[TimeUse::computing];
  ledger.move(TimeUse::computing, TimeUse::input, computed / 2);
  ledger.move(TimeUse::computing, TimeUse::slowest, 1e6);
  ledger.move(TimeUse::computing, TimeUse::slowest, -5);
  const TimeSpent spent = ledger.spent();
  EXPECT_DOUBLE_EQ(spent[TimeUse::input], computed / 2);
  EXPECT_DOUBLE_EQ(spent[TimeUse::slowest], computed / 2);
  EXPECT_EQ(spent[TimeUse::computing], 0);
}

TEST(TimeLedger, IsOfTheThreadThatMadeIt) {
  const TimeLedger ledger;
  EXPECT_EQ(TimeLedger::of_this_thread(), &ledger);
  std::jthread([&] {
    EXPECT_EQ(TimeLedger::of_this_thread(), nullptr);
    const Spending nothing(TimeUse::storage);
  }).join();
  EXPECT_EQ(ledger.spent()[TimeUse::storage], 0);
}

TEST(TimeLedger, EachProcessHasAnotherName) {
  const TimeLedger one, other;
  EXPECT_NE(string_or(one.json(), "process", ""), string_or(other.json(), "process", ""));
}

}  // namespace
}  // namespace muster
