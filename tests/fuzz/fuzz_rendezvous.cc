#include <cstddef>
#include <cstdint>

#include "common/error.h"
#include "trainer/collective/collective_formation.h"
#include "trainer/collective/member_flow.h"
#include "trainer/collective/plan.h"
#include "trainer/group/position.h"
#include "trainer/ps/group/ps_formation.h"

using namespace muster;

namespace {

constexpr int kShards = 2;

group::PeerRegistry::Expected expected() {
  group::PeerRegistry::Expected expected;
  expected.job_uid = "uid";
  expected.version = "1";
  expected.training_fingerprint = "training";
  expected.training = R"({"batchSize": 32, "model": {"layers": [{"dense": {"units": 2}}]}})";
  expected.layout_fingerprint = "layout";
  expected.workers = 2;
  expected.shards = kShards;
  return expected;
}

// A peer's first message, as it is and with what makes it one of the group.
void attend(PeerMessage message) {
  group::PeerRegistry registry(expected());
  group::PeerRegistry::Time now{};
  registry.must_wait(message.hello());
  registry.admit(1, message.hello(), now);
  Hello& hello = *message.mutable_hello();
  hello.set_job_uid("uid");
  hello.set_version("1");
  registry.admit(2, hello, now);
  hello.set_training_fingerprint("training");
  hello.set_layout_fingerprint("layout");
  hello.set_role(message.shards_size() > 0 ? "ps" : "worker");
  hello.set_address("127.0.0.1:1");
  hello.set_index(hello.index() % 2);
  if (!registry.admit(3, hello, now).empty() || !registry.heard(3, message, now)) return;
  hello.set_role("chief");
  hello.set_index(0);
  registry.admit(4, hello, now);
  registry.heard(4, message, now);
  ps::PsFormation shards(kShards, true, OpenRequest(), 2);
  shards.claimed(5);
  shards.fenced();
  shards.look(registry);
  collective::CollectiveFormation members({.members = 3}, now);
  members.claimed(5);
  members.fenced(0);
  members.look(registry, now);
}

// Reads a view as a member does that rank 0 has sent it to.
void look_at(const GroupView& view) {
  ps::serving_of(view, kShards);
  ps::left_behind(view, 1);
  collective::MemberFlow(1).next(view);
  collective::require_possible(view.collective());
  group::from_messages(view.sums());
  if (group::is_possible(view.base())) group::to_message(group::from_message(view.base()));
}

}  // namespace

// Whole messages of the rendezvous, of any size: a peer's, and those that it is answered with.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const int rest = static_cast<int>(size - 1);
  try {
    if (PeerMessage message; bytes[0] % 2 == 0 && message.ParseFromArray(bytes + 1, rest))
      attend(message);
    if (GroupMessage message; bytes[0] % 2 == 1 && message.ParseFromArray(bytes + 1, rest))
      look_at(message.view());
  } catch (const Invalid&) {
  }
  return 0;
}
