#include "trainer/folder/claim.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/common/temporary_folder.h"
#include "trainer/spec/changes.h"

namespace muster::folder {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

// Whoever lives is never taken for silent, however slow the machine is.
constexpr LeasePace kQuick{milliseconds(10), milliseconds(60000), milliseconds(5),
                           milliseconds(60000)};

Json training(double rate, int epochs) {
  return {{"model", {{"name", "linear-regression"}}},
          {"data", {{"train", {{"syntheticLinear", {{"samples", 100}}}}}}},
          {"epochs", epochs},
          {"optimizer", {{"name", "sgd"}, {"learningRate", rate}}}};
}

Owner job(const std::string& name, const std::string& uid, double rate = 0.1, int epochs = 2) {
  return {"lab", name, uid, "collective", 2, *spec::with_defaults(training(rate, epochs))};
}

std::unique_ptr<Claim> take(const std::filesystem::path& storage, const Owner& owner,
                            const std::string& adopt = "", const std::stop_token& stop = {},
                            const LeasePace& pace = kQuick) {
  ClaimRequest request;
  request.storage = storage;
  request.job = owner;
  request.adopt = adopt;
  return Claim::take(request, stop, pace);
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kProtocol);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(ObstacleTest, AJobGoesOnFromItsOwnFolderAlone) {
  const Owner one = job("one", "u1");
  Owner other_data = job("one", "u2");
  other_data.training["data"]["train"]["syntheticLinear"]["seed"] = 5;
  Owner saves_otherwise = job("one", "u2");
  saves_otherwise.training["checkpoint"]["everySteps"] = 7;
  saves_otherwise.training["threads"] = 3;
  Owner more_replicas = job("one", "u2");
  more_replicas.replicas = 3;
  Owner by_ps = job("one", "u2");
  by_ps.exchange = "parameterServers";
  Owner in_another_namespace = job("one", "u2");
  in_another_namespace.name_space = "prod";
  Owner of_an_earlier_version{"", "one", "u1", "", 0, nullptr};

  struct Case {
    std::string name;
    Owner owner, job;
    std::string adopt;
    std::vector<std::string> said;  // empty: it goes on
  };
  const std::vector<Case> cases = {
      {"the same job", one, one, "", {}},
      {"the same job, changed", one, job("one", "u1", 0.5, 9), "", {}},
      {"made again", one, job("one", "u2"), "", {}},
      {"made again, saves otherwise", one, saves_otherwise, "", {}},
      {"made again with another learning rate",
       one,
       job("one", "u2", 0.5),
       "",
       {"training.optimizer.learningRate (was 0.1, is 0.5)", "spec.storage.adopt to \"lab/one\"",
        "initializeFrom", "spec.storage.folder", "/volume"}},
      {"made again with more epochs", one, job("one", "u2", 0.1, 3), "", {"training.epochs"}},
      {"made again with other data", one, other_data, "", {"syntheticLinear.seed"}},
      {"made again with more replicas", one, more_replicas, "", {"(was 2, is 3)"}},
      {"made again with another strategy", one, by_ps, "", {"strategy"}},
      {"another name", one, job("two", "u2"), "", {"found that the job lab/one has trained there"}},
      {"another namespace", one, in_another_namespace, "", {"the folder of the job prod/one"}},
      {"another job, adopted", one, job("two", "u2", 0.5), "lab/one", {}},
      {"made again and changed, adopted", one, job("one", "u2", 0.5), "lab/one", {}},
      {"another is adopted", one, job("two", "u2"), "lab/three", {"lab/one"}},
      {"an earlier version's, by its name",
       of_an_earlier_version,
       Owner{"", "one", "u2", "collective", 2, one.training},
       "",
       {"what it trained is not known"}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const std::string why = obstacle("/volume", each.owner, each.job, each.adopt);
    EXPECT_EQ(why.empty(), each.said.empty()) << why;
    for (const std::string& word : each.said) EXPECT_THAT(why, HasSubstr(word));
  }
}

TEST(ClaimTest, ANewFolderIsMadeAndOwned) {
  const test::TemporaryFolder root;
  const auto storage = root.path() / "lab-one";
  {
    const auto claim = take(storage, job("one", "u1"));
    ASSERT_TRUE(claim);
    EXPECT_TRUE(std::filesystem::exists(storage / "lease"));
  }
  EXPECT_FALSE(std::filesystem::exists(storage / "lease"));
  EXPECT_EQ(read_owner(storage), job("one", "u1"));
}

TEST(ClaimTest, OneThatIsRefusedLeavesTheFolderAsItWas) {
  const test::TemporaryFolder root;
  write_owner(root.path(), job("one", "u1"));
  EXPECT_THAT(refusal([&] { take(root.path(), job("two", "u2")); }), HasSubstr("lab/one"));
  EXPECT_EQ(read_owner(root.path()), job("one", "u1"));
  EXPECT_FALSE(std::filesystem::exists(root.path() / "lease"));
}

// A rank 0 that is replaced, perhaps while it still lives, waits for nobody: generations fence it.
TEST(ClaimTest, TheSameJobTakesItAtOnce) {
  const test::TemporaryFolder root;
  const auto before = take(root.path(), job("one", "u1"));
  const auto after = take(root.path(), job("one", "u1", 0.5));
  ASSERT_TRUE(after);
  EXPECT_EQ(read_owner(root.path()), job("one", "u1", 0.5));
  EXPECT_NO_THROW(before->require_held());
}

TEST(ClaimTest, ALivingOwnerIsNotDispossessed) {
  const test::TemporaryFolder root;
  const auto one = take(root.path(), job("one", "u1"));
  EXPECT_THAT(refusal([&] { take(root.path(), job("two", "u2"), "lab/one"); }),
              AllOf(HasSubstr("lab/one"), HasSubstr("its lease is being renewed")));
  EXPECT_EQ(read_owner(root.path()), job("one", "u1"));
  EXPECT_FALSE(one->token().stop_requested());
  EXPECT_NO_THROW(one->require_held());
}

TEST(ClaimTest, ADeadOwnerIsFollowedWhenItsLeaseHasBeenSilent) {
  const test::TemporaryFolder root;
  LeasePace pace = kQuick;
  pace.silence = milliseconds(200);
  write_owner(root.path(), job("one", "u1"));
  std::ofstream(root.path() / "lease") << "123 00000000000000000007\n";
  const auto two = take(root.path(), job("two", "u2"), "lab/one", {}, pace);
  ASSERT_TRUE(two);
  EXPECT_EQ(read_owner(root.path())->name(), "lab/two");
}

TEST(ClaimTest, AnEarlierJobOfTheNameIsWaitedFor) {
  const test::TemporaryFolder root;
  auto before = take(root.path(), job("one", "u1"));
  auto after = std::async(std::launch::async, [&] { return take(root.path(), job("one", "u2")); });
  EXPECT_EQ(after.wait_for(milliseconds(300)), std::future_status::timeout);
  EXPECT_EQ(read_owner(root.path())->uid, "u1");
  before.reset();
  EXPECT_TRUE(after.get());
  EXPECT_EQ(read_owner(root.path())->uid, "u2");
}

TEST(ClaimTest, WhoWaitsCanBeAskedToStop) {
  const test::TemporaryFolder root;
  const auto before = take(root.path(), job("one", "u1"));
  std::stop_source stop;
  auto after = std::async(std::launch::async, [&] {
    return take(root.path(), job("one", "u2"), "", stop.get_token());
  });
  stop.request_stop();
  EXPECT_FALSE(after.get());
  EXPECT_EQ(read_owner(root.path())->uid, "u1");
}

TEST(ClaimTest, AnEarlierJobThatDoesNotLeaveIsToldOf) {
  const test::TemporaryFolder root;
  const auto before = take(root.path(), job("one", "u1"));
  LeasePace pace = kQuick;
  pace.patience = milliseconds(50);
  EXPECT_THROW(take(root.path(), job("one", "u2"), "", {}, pace), Unavailable);
}

TEST(ClaimTest, WhoIsDispossessedIsStoppedAtOnce) {
  const test::TemporaryFolder root;
  const auto one = take(root.path(), job("one", "u1"));
  std::atomic<bool> stopped{false};
  const std::stop_callback on_stop(one->token(), [&] {
    stopped = true;
    stopped.notify_all();
  });
  write_owner(root.path(), job("two", "u2"));
  stopped.wait(false);
  EXPECT_THAT(refusal([&] { one->require_held(); }), HasSubstr("lab/two"));
}

// It is not the lease of the one that goes.
TEST(ClaimTest, AnothersLeaseIsLeftAlone) {
  const test::TemporaryFolder root;
  auto one = take(root.path(), job("one", "u1"), "", {},
                  {milliseconds(60000), milliseconds(1), milliseconds(1), milliseconds(1)});
  std::ofstream(root.path() / "lease") << "another's\n";
  one.reset();
  EXPECT_TRUE(std::filesystem::exists(root.path() / "lease"));
}

TEST(ClaimTest, AStopReachesWhoHoldsTheFolder) {
  const test::TemporaryFolder root;
  std::stop_source stop;
  const auto one = take(root.path(), job("one", "u1"), "", stop.get_token());
  EXPECT_FALSE(one->token().stop_requested());
  stop.request_stop();
  EXPECT_TRUE(one->token().stop_requested());
  EXPECT_NO_THROW(one->require_held());
}

// A training that has no job is replaced by nobody, so another one that lives is another training.
TEST(ClaimTest, OfTwoTrainingsByThemselvesTheFirstKeepsTheFolder) {
  const test::TemporaryFolder root;
  const Owner alone{"", "standalone", "", "collective", 1, nullptr};
  auto one = take(root.path(), alone);
  EXPECT_THAT(refusal([&] { take(root.path(), alone); }), HasSubstr("the job standalone does now"));
  EXPECT_NO_THROW(one->require_held());
  one.reset();
  // One that was killed has left its lease.
  std::ofstream(root.path() / "lease") << "123 00000000000000000007\n";
  EXPECT_TRUE(take(root.path(), alone));
}

TEST(ClaimTest, AFolderWithoutAnOwnerIsWhoseItsContentsAre) {
  const test::TemporaryFolder root;
  ClaimRequest request;
  request.storage = root.path();
  request.job = job("one", "u1");
  std::optional<Owner> found = Owner{"", "u9", "u9", "", 0, request.job.training};
  request.owner_by_contents = [&] { return found; };
  EXPECT_THAT(refusal([&] { Claim::take(request, {}, kQuick); }), HasSubstr("adopt to \"u9\""));
  EXPECT_FALSE(read_owner(root.path()));
  found->uid = "u1";
  EXPECT_TRUE(Claim::take(request, {}, kQuick));
  EXPECT_EQ(read_owner(root.path()), request.job);
}

TEST(ClaimTest, WhoWaitsSaysForWhom) {
  const test::TemporaryFolder root;
  auto before = take(root.path(), job("one", "u1"));
  ClaimRequest request;
  request.storage = root.path();
  request.job = job("one", "u2");
  std::vector<std::string> said;
  request.say = [&](const std::string& text) {
    said.push_back(text);
    before.reset();
  };
  EXPECT_TRUE(Claim::take(request, {}, kQuick));
  EXPECT_THAT(said, testing::ElementsAre(HasSubstr("waiting for the job lab/one (uid u1)")));
}

TEST(ClaimTest, OfManyThatComeToANewFolderAtOnceOneGetsIt) {
  for (int round = 0; round < 20; ++round) {
    const test::TemporaryFolder root;
    constexpr int kMany = 8;
    std::vector<std::future<std::unique_ptr<Claim>>> claims;
    for (int i = 0; i < kMany; ++i) {
      claims.push_back(std::async(std::launch::async, [&root, i] {
        const std::string name = "job-" + std::to_string(i);
        return take(root.path(), job(name, "u" + std::to_string(i)));
      }));
    }
    int taken = 0;
    std::vector<std::unique_ptr<Claim>> held;
    for (auto& claim : claims) {
      try {
        held.push_back(claim.get());
        ++taken;
      } catch (const Invalid&) {
      }
    }
    EXPECT_EQ(taken, 1);
    EXPECT_NO_THROW(held.at(0)->require_held());
  }
}

}  // namespace
}  // namespace muster::folder
