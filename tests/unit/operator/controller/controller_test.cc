#include "operator/controller/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/error.h"
#include "common/system/file.h"

namespace muster::controller {
namespace {

using namespace std::chrono_literals;
using api::Role;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// A cluster in memory whose clock the test moves, and which fails when the test wants.
class FakeCluster final : public cluster::Cluster {
 public:
  api::TrainingJob job;
  api::Time time{1000s};
  std::vector<plan::ObservedReplica> replicas;
  std::vector<std::string> calls;
  int failing_writes = 0;
  int failing_creations = 0;
  int refused_writes = 0;
  std::function<void()> on_get;  // once, when it has looked
  bool puts_off = false;
  bool gone = false;

  FakeCluster() {
    job.name = "job";
    job.uid = "uid";
    job.replicas[Role::worker] = {};
    job.decided_by = api::DecidedBy::all_workers;
  }

  api::Time now() const override { return time; }
  std::optional<api::TrainingJob> get(const std::string&) override {
    const bool found = !gone;
    if (on_get) std::exchange(on_get, nullptr)();
    return found ? std::optional(job) : std::nullopt;
  }
  plan::Observed observe(const api::TrainingJob&) override {
    plan::Observed observed;
    observed.replicas = replicas;
    return observed;
  }
  bool publish_status(const api::TrainingJob&, const api::JobStatus& status) override {
    if (puts_off) return false;
    calls.push_back("status");
    if (failing_writes-- > 0) throw Unavailable("status: conflict");
    if (refused_writes-- > 0) throw Invalid("status: no such thing");
    job.status = status;
    return true;
  }
  void create(const api::TrainingJob&, std::span<const plan::CreateReplica> wanted) override {
    for (const plan::CreateReplica& replica : wanted) create_one(replica);
  }
  void create_one(const plan::CreateReplica& replica) {
    calls.push_back("create " + std::to_string(replica.attempt));
    if (failing_creations-- > 0) throw Unavailable("create: try later");
    plan::ObservedReplica seen;
    seen.role = replica.role;
    seen.index = replica.index;
    seen.attempt = replica.attempt;
    seen.run = replica.run;
    seen.uid = std::to_string(replica.attempt);
    seen.phase = plan::Phase::running;
    seen.ready = true;
    seen.started = time;
    replicas.push_back(seen);
  }
  void remove(const api::TrainingJob&, std::span<const plan::RemoveReplica> unwanted) override {
    for (const plan::RemoveReplica& replica : unwanted) {
      calls.push_back("remove " + replica.uid);
      std::erase_if(replicas, [&](const auto& seen) { return seen.uid == replica.uid; });
    }
  }
  void emit(const api::TrainingJob&, const plan::Event& event) override {
    calls.push_back("event " + event.reason);
  }
  void remove_job(const api::TrainingJob&) override {
    calls.push_back("remove job");
    gone = true;
  }

  void end(int exit_code) {
    plan::ObservedReplica& seen = replicas.back();
    seen.phase = exit_code == 0 ? plan::Phase::succeeded : plan::Phase::failed;
    seen.exit_code = exit_code;
    seen.ready = false;
    seen.finished = time;
  }
  std::vector<std::string> take_calls() { return std::exchange(calls, {}); }
};

class ControllerTest : public testing::Test {
 protected:
  FakeCluster cluster_;
  std::vector<Controller::Trouble> troubles_;
  Controller controller_{cluster_,
                         [this](const auto& trouble) { troubles_.push_back(trouble); },
                         BackOff{100ms, 1s},
                         nullptr,
                         [this] { return Moment(cluster_.time.time_since_epoch() - jumped_); },
                         [this] { return used_ += pass_; }};
  std::chrono::milliseconds jumped_{0};  // how far somebody has set the wall clock
  std::chrono::milliseconds pass_{0};    // the CPU time of each pass
  std::chrono::milliseconds used_{0};
};

TEST_F(ControllerTest, a_job_rests_for_four_times_as_long_as_its_pass_computed) {
  const auto looks_after = [this](std::chrono::milliseconds waited) {
    cluster_.time += waited;
    bool looked = false;
    cluster_.on_get = [&] { looked = true; };
    controller_.wake("job");
    controller_.work();
    cluster_.on_get = nullptr;
    return looked;
  };
  pass_ = 50ms;
  EXPECT_TRUE(looks_after(0ms));
  EXPECT_FALSE(looks_after(199ms));
  EXPECT_TRUE(looks_after(1ms));
  pass_ = 10s;
  EXPECT_TRUE(looks_after(200ms));
  EXPECT_TRUE(looks_after(1s)) << "no rest is longer";
  pass_ = 2ms;
  EXPECT_TRUE(looks_after(1s));
  EXPECT_TRUE(looks_after(0ms)) << "the pass was short";
}

TEST_F(ControllerTest, writes_the_status_once_before_it_acts) {
  controller_.wake("job");
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(), ElementsAre("status", "event Started", "create 0"));
}

TEST_F(ControllerTest, tells_what_happened_with_the_status_that_is_put_off) {
  cluster_.puts_off = true;
  controller_.wake("job");
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(), ElementsAre("create 0"));
  cluster_.puts_off = false;
  controller_.wake("job");
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(), ElementsAre("status", "event Started", "event Running"));
}

TEST_F(ControllerTest, goes_on_with_the_other_jobs_after_a_bug) {
  cluster_.on_get = [] { throw std::logic_error("index 7 of 3"); };
  controller_.wake("job");
  controller_.wake("other");
  controller_.work();
  ASSERT_EQ(troubles_.size(), 1U);
  EXPECT_EQ(troubles_[0].message, "a bug of Muster's keeps this job from being run: index 7 of 3");
  EXPECT_TRUE(troubles_[0].invalid && troubles_[0].broken);
  EXPECT_THAT(cluster_.take_calls(), ElementsAre("status", "event Started", "create 0"));
}

TEST_F(ControllerTest, does_nothing_unless_woken_and_nothing_new_if_nothing_changed) {
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(), IsEmpty());
  controller_.wake("job");
  controller_.work();
  controller_.wake("job");
  controller_.work();  // the replica is in view now
  cluster_.take_calls();
  controller_.wake("job");
  EXPECT_EQ(controller_.work(), std::nullopt);
  EXPECT_THAT(cluster_.take_calls(), IsEmpty());
}

TEST_F(ControllerTest, does_nothing_else_where_the_status_cannot_be_written) {
  cluster_.failing_writes = 1;
  controller_.wake("job");
  EXPECT_EQ(controller_.work(), 100ms);
  EXPECT_THAT(cluster_.take_calls(), ElementsAre("status"));
  ASSERT_EQ(troubles_.size(), 1u);
  EXPECT_EQ(troubles_[0].message, "status: conflict");
  EXPECT_FALSE(troubles_[0].invalid || troubles_[0].lasting);
  cluster_.time += 100ms;
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(), ElementsAre("status", "event Started", "create 0"));
}

TEST_F(ControllerTest, says_of_a_write_whether_waiting_helps) {
  for (const bool lasting : {false, true}) {
    cluster_.on_get = [=] { throw WriteError("job.json", lasting ? EFBIG : ENOSPC); };
    controller_.wake("job");
    controller_.work();
    ASSERT_FALSE(troubles_.empty());
    EXPECT_EQ(troubles_.back().lasting, lasting);
    EXPECT_FALSE(troubles_.back().invalid);
  }
}

TEST_F(ControllerTest, backs_off_longer_with_each_failure_in_a_row_up_to_a_limit) {
  cluster_.failing_writes = 7;
  controller_.wake("job");
  std::vector<std::chrono::milliseconds> delays;
  for (int i = 0; i < 7; ++i) {
    delays.push_back(controller_.work().value());
    cluster_.time += delays.back();
  }
  EXPECT_THAT(delays, ElementsAre(100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms, 1000ms));
  controller_.work();
  cluster_.failing_writes = 1;
  cluster_.job.generation = 2;
  controller_.wake("job");
  EXPECT_EQ(controller_.work(), 100ms) << "a success ends the row";
}

TEST_F(ControllerTest, waits_as_long_although_somebody_sets_the_wall_clock) {
  for (const std::chrono::milliseconds jump : {-3'600'000ms, 3'600'000ms}) {
    cluster_.failing_writes = 1;
    cluster_.job.generation += 1;
    controller_.wake("job");
    EXPECT_EQ(controller_.work(), 100ms);
    jumped_ += jump;
    cluster_.time += jump;
    EXPECT_EQ(controller_.work(), 100ms);
    cluster_.time += 100ms;
    cluster_.take_calls();
    controller_.work();
    EXPECT_THAT(cluster_.take_calls(), Contains("status"));
  }
}

TEST_F(ControllerTest, repeats_creations_that_failed_after_the_status_was_written) {
  cluster_.failing_creations = 1;
  controller_.wake("job");
  cluster_.time += controller_.work().value();
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(),
              ElementsAre("status", "event Started", "create 0", "create 0"));
}

TEST_F(ControllerTest, looks_again_when_the_plan_says) {
  controller_.wake("job");
  controller_.work();
  cluster_.end(1);  // restarted at once
  controller_.wake("job");
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(), Contains("create 1"));
  cluster_.end(1);  // this time after a back-off
  controller_.wake("job");
  const std::chrono::milliseconds next = controller_.work().value();
  EXPECT_GT(next, 0ms);
  EXPECT_THAT(cluster_.take_calls(), testing::Not(Contains(StartsWith("create"))));
  cluster_.time += next;
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(), Contains("create 2"));
}

TEST_F(ControllerTest, tries_again_what_is_refused_after_the_longest_back_off) {
  cluster_.refused_writes = 2;
  controller_.wake("job");
  EXPECT_EQ(controller_.work(), 1s);
  ASSERT_EQ(troubles_.size(), 1u);
  EXPECT_EQ(troubles_[0].message, "status: no such thing");
  EXPECT_TRUE(troubles_[0].invalid);
  controller_.wake("job");
  EXPECT_EQ(controller_.work(), 1s) << "woken, it does not wait";
  EXPECT_EQ(troubles_.size(), 2u);
  cluster_.time += 1s;
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(),
              ElementsAre("status", "status", "status", "event Started", "create 0"));
}

TEST_F(ControllerTest, does_no_more_about_a_job_that_is_gone) {
  cluster_.gone = true;
  controller_.wake("job");
  EXPECT_EQ(controller_.work(), std::nullopt);
  EXPECT_THAT(cluster_.take_calls(), IsEmpty());
}

TEST_F(ControllerTest, sees_a_job_that_comes_while_it_is_found_gone) {
  cluster_.gone = true;
  cluster_.on_get = [this] {
    cluster_.gone = false;
    controller_.wake("job");
  };
  controller_.wake("job");
  controller_.work();
  EXPECT_THAT(cluster_.take_calls(), ElementsAre("status", "event Started", "create 0"));
}

TEST(WorkQueue, gives_a_key_to_one_taker_at_a_time) {
  WorkQueue queue;
  const Moment now{10s};
  queue.add("a", now);
  queue.add("a", now);
  EXPECT_EQ(queue.take(now), "a");
  EXPECT_EQ(queue.take(now), std::nullopt);
  queue.add("a", now);
  EXPECT_EQ(queue.take(now), std::nullopt) << "taken";
  EXPECT_EQ(queue.next(), std::nullopt);
  queue.done("a");
  EXPECT_EQ(queue.take(now), "a") << "added while taken";
  queue.done("a");
  EXPECT_EQ(queue.take(now), std::nullopt);
}

TEST(WorkQueue, keeps_the_earlier_of_two_times_and_gives_the_oldest_first) {
  WorkQueue queue;
  queue.add("a", Moment(30s));
  queue.add("a", Moment(20s));
  queue.add("a", Moment(40s));
  queue.add("b", Moment(10s));
  EXPECT_EQ(queue.next(), Moment(10s));
  EXPECT_EQ(queue.take(Moment(5s)), std::nullopt);
  EXPECT_EQ(queue.take(Moment(25s)), "b");
  EXPECT_EQ(queue.take(Moment(25s)), "a");
}

TEST(WorkQueue, what_rests_is_not_taken_earlier_whenever_it_was_added) {
  WorkQueue queue;
  queue.add("before", Moment(1s));
  queue.add("after", Moment(1s));
  EXPECT_EQ(queue.take(Moment(1s)), "after");
  EXPECT_EQ(queue.take(Moment(1s)), "before");
  queue.add("before", Moment(1s));
  queue.done("before", Moment(1s), Moment(3s));
  queue.done("after", Moment(1s), Moment(2s));
  queue.add("after", Moment(1s));
  EXPECT_EQ(queue.next(), Moment(2s));
  EXPECT_EQ(queue.take(Moment(2s)), "after");
  EXPECT_EQ(queue.take(Moment(2s)), std::nullopt);
  EXPECT_EQ(queue.take(Moment(3s)), "before");
  // A rest that is over holds nothing up, and a later time stays as it is.
  queue.done("before", Moment(3s), Moment(4s));
  queue.add("before", Moment(9s));
  EXPECT_EQ(queue.next(), Moment(9s));
}

TEST(WorkQueue, namespaces_take_turns) {
  WorkQueue queue;
  const auto taken = [&](Moment now) {
    std::string keys;
    while (const auto key = queue.take(now)) keys += *key + " ";
    return keys;
  };
  for (const char* key : {"crowd/1", "crowd/2", "crowd/3", "crowd/4"}) queue.add(key, Moment(1s));
  queue.add("single/1", Moment(2s));
  queue.add("later/1", Moment(9s));
  EXPECT_EQ(queue.take(Moment(1s)), "crowd/1");
  EXPECT_EQ(queue.due(Moment(2s)), 4);
  EXPECT_EQ(taken(Moment(2s)), "crowd/2 single/1 crowd/3 crowd/4 ");
  EXPECT_EQ(queue.due(Moment(2s)), 0);
  EXPECT_EQ(queue.next(), Moment(9s));
  // Whoever is due again waits for its turn.
  queue.add("crowd/5", Moment(3s));
  queue.add("crowd/6", Moment(3s));
  queue.add("single/2", Moment(3s));
  EXPECT_EQ(queue.take(Moment(3s)), "crowd/5");
  queue.add("single/3", Moment(3s));
  EXPECT_EQ(taken(Moment(3s)), "single/2 crowd/6 single/3 ");
}

TEST(WorkQueue, what_failed_waits_although_it_was_added_meanwhile) {
  WorkQueue queue({.first = 100ms, .longest = 30s});
  queue.add("a", Moment(1s));
  EXPECT_EQ(queue.due(Moment(1s)), 1);
  EXPECT_EQ(queue.take(Moment(1s)), "a");
  queue.add("a", Moment(1s));
  EXPECT_EQ(queue.due(Moment(1s)), 0) << "taken";
  queue.failed("a", Moment(1s));
  EXPECT_EQ(queue.take(Moment(1s)), std::nullopt);
  EXPECT_EQ(queue.next(), Moment(1100ms));
  EXPECT_EQ(queue.due(Moment(1100ms)), 1);
  EXPECT_EQ(queue.take(Moment(1100ms)), "a");
}

TEST(WorkQueue, what_is_refused_waits_longest_unless_it_was_added_meanwhile) {
  WorkQueue queue({.first = 100ms, .longest = 30s});
  queue.add("a", Moment(1s));
  EXPECT_EQ(queue.take(Moment(1s)), "a");
  queue.refused("a", Moment(1s));
  EXPECT_EQ(queue.failures("a"), 1);
  EXPECT_EQ(queue.next(), Moment(31s));
  EXPECT_EQ(queue.take(Moment(31s)), "a");
  queue.add("a", Moment(32s));
  queue.refused("a", Moment(31s));
  EXPECT_EQ(queue.next(), Moment(32s));
  queue.succeeded("a");
  EXPECT_EQ(queue.failures("a"), 0);
}

}  // namespace
}  // namespace muster::controller
