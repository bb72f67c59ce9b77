#include "operator/kube/api/lease.h"

#include <gmock/gmock.h>

#include "common/documents/json.h"
#include "operator/api/status.h"
#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

SeenLease held_by(const std::string& holder, BootTime since) {
  LeaseRecord record;
  record.holder = holder;
  record.duration = 15s;
  return {record, since};
}

TEST(Lease, WhatToDoFollowsFromWhatWasSeenAndWhen) {
  EXPECT_EQ(decide({}, "me", 100s), LeaseAction::create);
  EXPECT_EQ(decide(held_by("me", 0s), "me", 100s), LeaseAction::renew);
  EXPECT_EQ(decide(held_by("", 99s), "me", 100s), LeaseAction::take);
  EXPECT_EQ(decide(held_by("you", 86s), "me", 100s), LeaseAction::wait);
  EXPECT_EQ(decide(held_by("you", 85s), "me", 100s), LeaseAction::take);
}

TEST(Lease, RecordsCountTransitionsAndKeepTheTimeOfTaking) {
  LeaseSettings settings;
  settings.identity = "me";
  settings.duration = 14'001ms;
  SeenLease seen = held_by("you", 0s);
  seen.record->transitions = 4;
  seen.record->acquired = Time(7s);
  const LeaseRecord taken = next_record(seen, LeaseAction::take, settings, Time(50s));
  EXPECT_EQ(taken.holder, "me");
  EXPECT_EQ(taken.transitions, 5);
  EXPECT_EQ(taken.acquired, Time(50s));
  EXPECT_EQ(taken.duration, 15s);
  const LeaseRecord renewed = next_record({taken, 0s}, LeaseAction::renew, settings, Time(60s));
  EXPECT_EQ(renewed.transitions, 5);
  EXPECT_EQ(renewed.acquired, Time(50s));
  EXPECT_EQ(renewed.renewed, Time(60s));
  EXPECT_EQ(next_record({}, LeaseAction::create, settings, Time(1s)).transitions, 0);
}

TEST(Lease, IsWrittenAsTheApiHasItAndReadBack) {
  LeaseSettings settings;
  settings.name_space = "system";
  LeaseRecord record;
  record.holder = "me";
  record.acquired = Time(1'500ms);
  record.renewed = Time(2'000ms);
  record.transitions = 3;
  record.resource_version = "42";
  const Json object = to_json(record, settings);
  EXPECT_EQ(object["spec"]["acquireTime"], "1970-01-01T00:00:01.500000Z");
  EXPECT_EQ(object["metadata"]["resourceVersion"], "42");
  EXPECT_EQ(to_lease_record(object), record);
  EXPECT_EQ(to_lease_record(Json::parse(R"({"spec":{"holderIdentity":null}})")).holder, "");
}

// One Lease on a server, with optimistic locking.
class LeaseServer {
 public:
  Response answer_to(const Request& request) {
    if (down) return unreachable();
    if (request.method == Method::get) {
      return lease_.is_null() ? refusal(404, "NotFound", "none") : answer(200, lease_.dump());
    }
    const Json body = Json::parse(request.body);
    if (request.method == Method::post && !lease_.is_null()) {
      return refusal(409, "AlreadyExists", "there");
    }
    if (request.method == Method::put &&
        body["metadata"]["resourceVersion"] != lease_["metadata"]["resourceVersion"]) {
      return refusal(409, "Conflict", "newer");
    }
    lease_ = body;
    lease_["metadata"]["resourceVersion"] = std::to_string(++version_);
    ++writes;
    return answer(200, lease_.dump());
  }
  std::string holder() const { return string_or(member(lease_, "spec"), "holderIdentity", ""); }
  std::string renewed() const { return string_or(member(lease_, "spec"), "renewTime", ""); }

  bool down = false;
  int writes = 0;

 private:
  static Response unreachable() {
    Response response;
    response.error = "no connection";
    return response;
  }
  Json lease_;
  int version_ = 0;
};

// Candidates on machines with clocks of their own; each waits by letting a test do something.
class LeaderElectionTest : public ::testing::Test {
 protected:
  using Turns = std::deque<std::function<void()>>;

  // Runs a candidate; before each wait after its steps, the next of `turns`; then it is stopped.
  void run(const std::string& identity, Turns turns) {
    LeaseSettings settings;
    settings.name_space = "system";
    settings.identity = identity;
    FakeTransport transport([this](const Request& request) { return server_.answer_to(request); });
    std::stop_source stop;
    LeaderElection election(
        transport, settings,
        [&](bool leads) { told_.push_back(identity + (leads ? " leads" : " does not")); },
        [this] { return now_; },
        [&](std::chrono::milliseconds time, const std::stop_token&) {
          if (turns.empty()) return false;
          const auto turn = turns.front();
          turns.pop_front();
          turn();
          now_ += time;
          return true;
        });
    elections_.push_back(&election);
    election.run(stop.get_token());
    elections_.pop_back();
  }
  bool leads() const { return elections_.back()->leads(); }
  std::string leader() const { return elections_.back()->leader(); }
  std::optional<LeaseRecord> taken() const { return elections_.back()->taken(); }

  LeaseServer server_;
  BootTime now_ = 1000s;
  std::vector<std::string> told_;
  std::vector<LeaderElection*> elections_;
};

TEST_F(LeaderElectionTest, TakesRenewsAndGivesUp) {
  run("a", {[&] {
              EXPECT_TRUE(leads());
              EXPECT_EQ(leader(), "a");
            },
            [&] {
              EXPECT_TRUE(leads());
              EXPECT_EQ(server_.writes, 2);
            }});
  EXPECT_EQ(server_.holder(), "");
  EXPECT_THAT(told_, ElementsAre("a leads", "a does not"));
}

TEST_F(LeaderElectionTest, TheNextOneNeedNotWaitForALeaseGivenUp) {
  run("a", {});
  run("b", {[&] { EXPECT_TRUE(leads()); }});
  EXPECT_THAT(told_, ElementsAre("a leads", "a does not", "b leads", "b does not"));
}

TEST_F(LeaderElectionTest, KnowsWhenTheLeaderBeforeRenewedLast) {
  run("a", {[&] { EXPECT_FALSE(taken()); }});
  const std::string given_up = server_.renewed();
  const auto look = [&] {
    ASSERT_TRUE(taken());
    EXPECT_EQ(taken()->renewed, api::parse_time(given_up));
    EXPECT_EQ(taken()->transitions, 0);
  };
  run("b", {look, look});
  run("c", {[&] { EXPECT_EQ(taken()->transitions, 1); }});
}

TEST_F(LeaderElectionTest, WaitsWhileAnotherRenewsAndTakesOverWhenItNoLongerDoes) {
  run("a", {[&] {
        // b looks on for a minute while a, in between, renews.
        Turns looks;
        for (int i = 0; i < 30; ++i) {
          looks.push_back([&] {
            EXPECT_FALSE(leads());
            EXPECT_EQ(leader(), "a");
            Json lease = Json::parse(server_.answer_to(Request()).body);
            lease["spec"]["renewTime"] =
                "2026-01-01T00:00:0" + std::to_string(server_.writes % 10) + ".000000Z";
            Request renewal;
            renewal.method = Method::put;
            renewal.body = lease.dump();
            server_.answer_to(renewal);
          });
        }
        // Then a dies: b counts from the last change that it saw.
        for (int i = 0; i < 8; ++i) looks.push_back([&] { EXPECT_FALSE(leads()); });
        looks.push_back([&] { EXPECT_TRUE(leads()); });
        run("b", looks);
        EXPECT_FALSE(leads()) << "a was away for more than a minute";
      }});
}

TEST_F(LeaderElectionTest, WhoCannotRenewIsNoLeaderBeforeAnybodyElseCanBe) {
  Turns turns;
  turns.push_back([&] {
    EXPECT_TRUE(leads());
    server_.down = true;
  });
  for (int i = 0; i < 4; ++i) turns.push_back([&] { EXPECT_TRUE(leads()); });
  turns.push_back([&] { EXPECT_FALSE(leads()); });
  turns.push_back([&] { server_.down = false; });
  turns.push_back([&] { EXPECT_TRUE(leads()); });
  run("a", turns);
  EXPECT_THAT(told_, ElementsAre("a leads", "a does not", "a leads", "a does not"));
}

TEST_F(LeaderElectionTest, ALeaderThatSleptKnowsByTheClock) {
  run("a", {[&] {
              EXPECT_TRUE(leads());
              now_ += 60s;  // suspended
              EXPECT_FALSE(leads());
              run("b", {[&] {}, [&] {}, [&] {}, [&] {}, [&] {}, [&] {}, [&] {}, [&] {},
                        [&] { EXPECT_TRUE(leads()); }, [&] { server_.down = true; }});
              server_.down = false;
            },
            [&] { EXPECT_FALSE(leads()); },
            [&] {
              EXPECT_FALSE(leads());
              EXPECT_EQ(leader(), "b");
            }});
}

}  // namespace
}  // namespace muster::kube
