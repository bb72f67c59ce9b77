#include "trainer/ps/serving/shard_host.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/trainer/ps/shards.h"

namespace muster::ps {
namespace {

using testing::HasSubstr;

constexpr uint64_t kTooMany = group::kMostCounted + 1;

// Expects that `call` is refused as a peer's that is of another kind, and that the shard stays as
// it was.
void expect_refused(ShardHost& host, const std::string& names, const std::function<void()>& call) {
  const std::string before = host.state().SerializeAsString();
  try {
    call();
    ADD_FAILURE() << "taken: " << names;
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kProtocol);
    EXPECT_THAT(error.what(), HasSubstr(names));
  }
  EXPECT_EQ(host.state().SerializeAsString(), before);
}

TEST(ShardHostTest, AnOpeningThatCannotBeIsRefused) {
  Shards shards(spec::SyncPolicy::sync, 1, 1);
  struct Case {
    std::function<void(OpenRequest&)> change;
    std::string names;
  };
  const std::vector<Case> cases = {
      {[](auto& r) { r.set_job_uid("x"); }, "expected this job's uid, found \"x\""},
      {[](auto& r) { r.set_version("2"); }, "version"},
      {[](auto& r) { r.set_training_fingerprint("x"); }, "training fingerprint"},
      {[](auto& r) { r.set_layout_fingerprint("x"); }, "layout fingerprint"},
      {[](auto& r) { r.set_members(0); }, "at least one member, found 0"},
      {[](auto& r) { r.set_members(~0u); }, "member, found 4294967295"},
      {[](auto& r) { r.set_shard(1); }, "expected shard 0, found 1"},
      {[](auto& r) { r.set_shard(~0u); }, "expected shard 0, found 4294967295"},
      {[](auto& r) { r.set_generation(0); }, "expected a generation from 1 to 1048577, found 0"},
      {[](auto& r) { r.set_generation(uint64_t{1} << 63); },
       "expected a generation from 1 to 1048577, found 9223372036854775808"},
      {[](auto& r) { r.set_generation(~uint64_t{0}); }, "found 18446744073709551615"},
      {[](auto& r) { r.mutable_position()->set_step(kTooMany); },
       "found step 4611686018427387905, epoch 0 and batch 0"},
      {[](auto& r) { r.mutable_position()->set_epoch(kTooMany); }, "a position"},
      {[](auto& r) { r.mutable_position()->set_next_batch(kTooMany); }, "a position"},
      {[](auto& r) { r.mutable_position()->set_optimizer_t(kTooMany); }, "a position"},
      {[](auto& r) { r.mutable_position()->add_sums()->set_rows(-1); }, "a position"},
      {[](auto& r) {
         r.set_content(OpenRequest::RESTORE);
         r.set_checkpoint("../elsewhere");
       },
       "a folder below the job's storage, found \"../elsewhere\""},
      {[](auto& r) {
         r.set_content(OpenRequest::RESTORE);
         r.set_checkpoint("/etc");
       },
       "found \"/etc\""}};
  for (const Case& one : cases) {
    OpenRequest request = shards.opening(0, 1);
    request.set_generation(2);
    one.change(request);
    expect_refused(shards.host(0), one.names, [&] { shards.host(0).open(request); });
  }
}

TEST(ShardHostTest, AWriteThatCannotBeIsRefused) {
  Shards shards(spec::SyncPolicy::sync, 1, 1);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double speed : {-1.0, infinity, -infinity, std::nan("")}) {
    WriteRequest request;
    request.set_generation(1);
    request.set_directory("checkpoints/x");
    request.set_bytes_per_second(speed);
    expect_refused(shards.host(0), "a speed of at least 0 bytes a second",
                   [&] { shards.host(0).write(request); });
  }
  WriteRequest elsewhere;
  elsewhere.set_generation(1);
  elsewhere.set_directory("../elsewhere");
  expect_refused(shards.host(0), "found \"../elsewhere\"",
                 [&] { shards.host(0).write(elsewhere); });
}

// A second copy is told by another ps, in a greeting and a state.
TEST(ShardHostTest, ASecondCopyThatCannotBeIsRefused) {
  Shards shards(spec::SyncPolicy::sync, 1, 1);
  struct Case {
    std::string what;
    std::function<void(ForwardState&)> change;
  };
  const std::vector<Case> cases = {
      {"step", [](auto& s) { s.set_step(kTooMany); }},
      {"t", [](auto& s) { s.set_optimizer_t(kTooMany); }},
      {"base", [](auto& s) { s.mutable_base()->set_step(kTooMany); }},
      {"sums", [](auto& s) { s.add_sums()->set_rows(-1); }},
      {"sums before", [](auto& s) { s.add_sums_before()->set_weight(-1); }},
      {"committed", [](auto& s) { s.mutable_committed()->set_rows(-1); }}};
  ForwardHello greeting;
  *greeting.mutable_opening() = shards.opening(0, 1);
  greeting.mutable_opening()->set_generation(2);
  const std::vector<float> values(shards.layout().size() * 3, 0.5f);  // parameters, Adam's slots
  const auto follow = [&](const std::function<void(ForwardState&)>& change) {
    Forward message;
    message.set_coupling(1);
    change(*message.mutable_state());
    return shards.host(0).follow(greeting, message, values).status();
  };
  for (const Case& one : cases) {
    EXPECT_EQ(follow(one.change), Acknowledgement::REJECTED) << one.what;
    EXPECT_TRUE(shards.host(0).state().serving());
  }
  // The greeting itself may have come with a message that was never taken.
  const ForwardHello good = greeting;
  greeting.mutable_opening()->set_members(~0u);
  EXPECT_EQ(follow([](auto&) {}), Acknowledgement::REJECTED);
  greeting = good;
  greeting.mutable_opening()->set_generation(~uint64_t{0});
  EXPECT_EQ(follow([](auto&) {}), Acknowledgement::REJECTED);
  EXPECT_TRUE(shards.host(0).state().serving());
  greeting = good;
  EXPECT_EQ(follow([](auto&) {}), Acknowledgement::OK);
  EXPECT_FALSE(shards.host(0).state().serving());
}

// Two processes that speak in the name of one member.
TEST(ShardHostTest, APushThatComesAgainWithOtherContentIsToldOfByName) {
  Shards shards(spec::SyncPolicy::sync, 1, 2);
  std::vector<float> gradients(shards.layout().size(), 0.5f);
  const std::vector<float> others(shards.layout().size(), 0.25f);
  PushHeader header;
  header.generation = 1;
  header.rank = 1;
  header.sequence = 1;
  header.sums.rows = 1;
  header.sums.weight = 1;
  testing::internal::CaptureStdout();
  shards.host(0).push(1, header, {gradients, {}});
  shards.host(0).push(2, header, {gradients, {}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  testing::internal::CaptureStdout();
  shards.host(0).push(3, header, {others, {}});
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("member 1 has sent its push of step 0 again with other content"));
  EXPECT_EQ(shards.host(0).counts().conflicting, 1u);
}

}  // namespace
}  // namespace muster::ps
