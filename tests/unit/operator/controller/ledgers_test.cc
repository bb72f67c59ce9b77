#include "operator/controller/ledgers.h"

#include <gtest/gtest.h>

#include <optional>

#include "common/documents/json.h"
#include "operator/api/status.h"

namespace muster::controller {
namespace {

using namespace std::chrono_literals;

// A job that is looked at by operators one after the other.
class LedgersTest : public testing::Test {
 protected:
  LedgersTest() {
    job_.name_space = "lab";
    job_.name = "mnist";
    job_.uid = "1";
    job_.created = now_;
  }

  // Looks after the time has passed; the job is on `use` from then on. Writes the status where the
  // plan has changed anything else in it.
  void look(std::chrono::milliseconds passed, TimeUse use, bool writes = true) {
    now_ += passed + jump_;
    jump_ = 0ms;
    ticks_ += passed;
    plan::Plan plan;
    plan.status = job_.status;
    plan.use = use;
    if (writes) ++plan.status.restarts;
    if (ends_) plan.status.completion_time = now_;
    ledgers_->look(job_, observed_, plan, now_, ticks_);
    if (!is_written_) return;
    ledgers_->told(job_, plan.status);
    if (plan.status != job_.status) job_.status = plan.status;
  }
  // The chief tells that it has spent so many seconds in this use, which goes on.
  void tell(TimeUse use, double seconds) {
    chief_.process = "a";
    chief_.use = use;
    chief_.spent[use] = seconds;
    observed_.ledger = chief_;
  }
  // Another process of the operator looks from now on.
  void another_operator() { ledgers_.emplace(); }
  TimeSpent spent() const { return TimeSpent::of(member(job_.status.goodput, "seconds")); }

  api::TrainingJob job_;
  plan::Observed observed_;
  plan::ProcessLedger chief_;
  std::optional<Ledgers> ledgers_{std::in_place};
  api::Time now_{1000s};
  Ledgers::Moment ticks_{50s};
  std::chrono::milliseconds jump_{0};  // how far the wall clock is set
  plan::Usage used() const { return ledgers_->by_namespace(ticks_).at("lab"); }

  bool ends_ = false;
  bool is_written_ = true;
};

TEST_F(LedgersTest, CountFromTheJobsCreation) {
  look(3s, TimeUse::queued);
  look(10s, TimeUse::starting);
  EXPECT_EQ(spent()[TimeUse::queued], 10);
  EXPECT_EQ(spent().total(), 13);
}

TEST_F(LedgersTest, AreNoReasonToWriteAStatus) {
  look(3s, TimeUse::queued);
  const Json before = job_.status.goodput;
  look(10s, TimeUse::pulling, /*writes=*/false);
  EXPECT_EQ(job_.status.goodput, before);
  look(5s, TimeUse::starting);
  EXPECT_EQ(spent()[TimeUse::queued], 10);
  EXPECT_EQ(spent()[TimeUse::pulling], 5);
}

TEST_F(LedgersTest, AnotherOperatorKeepsWhatWasCountedAndDoesNotKnowTheGap) {
  look(3s, TimeUse::queued);
  look(10s, TimeUse::suspended);
  another_operator();
  look(7s, TimeUse::suspended);
  look(5s, TimeUse::starting);
  EXPECT_EQ(spent()[TimeUse::queued], 10);
  EXPECT_EQ(spent()[TimeUse::unknown], 7);
  EXPECT_EQ(spent()[TimeUse::suspended], 5);
  EXPECT_EQ(spent().total(), 25);
}

TEST_F(LedgersTest, AnotherOperatorKnowsWhatTheOneBeforeLookedAt) {
  look(3s, TimeUse::queued);
  look(10s, TimeUse::computing);
  look(3600s, TimeUse::computing, /*writes=*/false);
  const api::Time looked_until = now_;
  another_operator();
  ledgers_->count_from(now_ + 12s, looked_until);
  look(20s, TimeUse::computing);
  EXPECT_EQ(spent()[TimeUse::computing], 3600);
  EXPECT_EQ(spent()[TimeUse::unknown], 20);
  EXPECT_DOUBLE_EQ(used().spent.total(), 8) << "the leader before has counted the rest";
}

TEST_F(LedgersTest, SumsDoNotGetTwiceWhatAProcessTellsLater) {
  look(3s, TimeUse::starting);
  tell(TimeUse::computing, 10);
  look(10s, TimeUse::starting);
  observed_.ledger.reset();
  another_operator();
  ledgers_->count_from(now_ + 60s, now_ + 50s);
  look(61s, TimeUse::starting, /*writes=*/false);
  tell(TimeUse::computing, 72);
  look(1s, TimeUse::starting);
  EXPECT_EQ(spent()[TimeUse::computing], 72);
  EXPECT_DOUBLE_EQ(used().spent.total(), 2);
}

TEST_F(LedgersTest, CountAJobThatIsNotLookedAtBecauseNothingChanges) {
  look(3s, TimeUse::queued);
  look(10s, TimeUse::computing);
  for (int i = 0; i < 6; ++i) {
    now_ += 10s;
    ticks_ += 10s;
    ledgers_->count_until(now_, ticks_);
    ledgers_->each([&](const Ledgers::Job& job) {
      EXPECT_EQ(job.ledger.spent()[TimeUse::computing], 10 * (i + 1));
    });
    EXPECT_EQ(ledgers_->by_namespace().at("lab").spent[TimeUse::computing], 10 * (i + 1));
  }
  look(5s, TimeUse::computing);
  EXPECT_EQ(spent()[TimeUse::computing], 65);
  EXPECT_EQ(spent().total(), 78);
}

TEST_F(LedgersTest, DoNotCountAheadOfAProcessThatTells) {
  look(3s, TimeUse::starting);
  tell(TimeUse::communication, 10);
  look(10s, TimeUse::starting);
  ledgers_->count_until(now_ + 10s, ticks_ + 10s);
  chief_.spent[TimeUse::computing] = 10;
  observed_.ledger = chief_;
  look(10s, TimeUse::starting);
  EXPECT_EQ(spent()[TimeUse::communication], 10);
  EXPECT_EQ(spent()[TimeUse::computing], 10);
}

TEST_F(LedgersTest, AWallClockThatJumpsChangesNothing) {
  look(1s, TimeUse::queued);
  jump_ = 3600s;
  look(10s, TimeUse::queued);
  jump_ = -7200s;
  look(10s, TimeUse::queued);
  EXPECT_EQ(spent().total(), 21);
}

TEST_F(LedgersTest, AnEndedJobSpendsNothingUntilItTrainsOn) {
  look(1s, TimeUse::queued);
  ends_ = true;
  look(10s, TimeUse::stopping);
  look(100s, TimeUse::stopping);
  EXPECT_EQ(spent().total(), 11);
  ends_ = false;
  job_.status.completion_time.reset();
  look(2s, TimeUse::queued);
  look(3s, TimeUse::starting);
  EXPECT_LE(spent().total(), 11 + 102 + 3);
  EXPECT_EQ(spent()[TimeUse::queued], 10 + 3);
}

TEST_F(LedgersTest, AJobOfTheSameNameBeginsAnew) {
  look(5s, TimeUse::queued);
  look(5s, TimeUse::queued);
  job_.uid = "2";
  job_.created = now_;
  job_.status = {};
  look(1s, TimeUse::pulling);
  look(2s, TimeUse::pulling);
  EXPECT_EQ(spent().total(), 3);
}

TEST_F(LedgersTest, ShowJobsAndSumsOfNamespaces) {
  look(5s, TimeUse::queued);
  look(5s, TimeUse::queued);
  int jobs = 0;
  ledgers_->each([&](const Ledgers::Job& job) {
    EXPECT_EQ(job.name_space + "/" + job.name, "lab/mnist");
    EXPECT_EQ(job.ledger.spent()[TimeUse::queued], 5);
    ++jobs;
  });
  EXPECT_EQ(jobs, 1);
  EXPECT_EQ(ledgers_->by_namespace().at("lab").spent.total(), 10);
  ledgers_->forget("lab/mnist", ticks_);
  ledgers_->each([](const Ledgers::Job&) { FAIL(); });
  EXPECT_EQ(ledgers_->by_namespace().at("lab").spent.total(), 10);
}

TEST_F(LedgersTest, SumsCountAnEndOnceHoweverOftenItIsWritten) {
  look(5s, TimeUse::queued);
  is_written_ = false;
  ends_ = true;
  look(5s, TimeUse::stopping);
  look(5s, TimeUse::stopping);
  EXPECT_EQ(used().ended, (std::map<std::string, int64_t>()));
  is_written_ = true;
  look(5s, TimeUse::stopping);
  look(5s, TimeUse::stopping);
  EXPECT_EQ(used().ended, (std::map<std::string, int64_t>{{"Pending", 1}}));
  EXPECT_EQ(used().spent.total(), 20);
}

TEST_F(LedgersTest, SumsCountAnEndWhoseAnswerWasLost) {
  look(5s, TimeUse::queued);
  is_written_ = false;
  ends_ = true;
  look(5s, TimeUse::stopping);
  job_.status.completion_time = now_;
  look(5s, TimeUse::stopping);
  look(5s, TimeUse::stopping);
  EXPECT_EQ(used().ended, (std::map<std::string, int64_t>{{"Pending", 1}}));
  EXPECT_EQ(used().spent.total(), 10);
}

TEST_F(LedgersTest, SumsHaveWhatIsNotLookedAtYetAndJobsThatAreDeleted) {
  job_.replicas[api::Role::worker].pod_template = {
      {"spec", {{"containers", {{{"resources", {{"limits", {{"nvidia.com/gpu", 4}}}}}}}}}}};
  look(5s, TimeUse::queued);
  look(5s, TimeUse::starting);
  ticks_ += 7s;
  EXPECT_EQ(used().spent[TimeUse::queued], 5);
  EXPECT_EQ(used().spent[TimeUse::starting], 5 + 7);
  EXPECT_EQ(used().gpu_seconds, (5 + 7) * 4);
  EXPECT_EQ(ledgers_->by_namespace().at("lab").spent.total(), 10);
  ledgers_->forget("lab/mnist", ticks_);
  EXPECT_EQ(ledgers_->by_namespace().at("lab").spent.total(), 17);
  EXPECT_EQ(used().ended, (std::map<std::string, int64_t>{{plan::kDeleted, 1}}));
}

TEST_F(LedgersTest, SumsBeginWhereTheLeaderDoes) {
  look(3s, TimeUse::queued);
  look(10s, TimeUse::suspended);
  another_operator();
  now_ += 20s;
  ticks_ += 20s;
  ledgers_->count_from(now_);
  look(2s, TimeUse::suspended);
  EXPECT_EQ(spent().total(), 35);
  EXPECT_DOUBLE_EQ(used().spent.total(), 2);
  look(5s, TimeUse::starting);
  EXPECT_DOUBLE_EQ(used().spent.total(), 7);
}

TEST_F(LedgersTest, KeepTheNewestOfThoseThatHaveEnded) {
  ends_ = true;
  const size_t all = Ledgers::kMostFinished + 5;
  for (size_t i = 0; i < all; ++i) {
    job_.name = "job-" + std::to_string(i);
    job_.status = {};
    look(1s, TimeUse::stopping);
  }
  size_t jobs = 0;
  ledgers_->each([&](const Ledgers::Job& job) {
    EXPECT_NE(job.name, "job-4");
    ++jobs;
  });
  EXPECT_EQ(jobs, Ledgers::kMostFinished);
}

}  // namespace
}  // namespace muster::controller
