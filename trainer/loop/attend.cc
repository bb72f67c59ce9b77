#include "trainer/loop/attend.h"

#include "common/random.h"
#include "trainer/group/address.h"
#include "trainer/group/grpc_server.h"
#include "trainer/ps/grpc_link.h"
#include "trainer/ps/shm_link.h"

namespace muster::loop {

namespace {

constexpr size_t kLongestTraining = 1 << 20;  // bytes; a message has a limit

}  // namespace

Hello make_hello(const group::Membership& membership, const Training& training,
                 const std::string& layout_fingerprint) {
  Hello hello;
  hello.set_job_uid(membership.uid);
  hello.set_version(group::version());
  hello.set_training_fingerprint(training.fingerprint);
  std::string text = training.json.dump();
  if (text.size() <= kLongestTraining) hello.set_training(std::move(text));
  hello.set_layout_fingerprint(layout_fingerprint);
  hello.set_role(membership.role_name);
  hello.set_index(static_cast<uint32_t>(membership.index));
  hello.set_attempt(static_cast<uint32_t>(membership.attempt));
  hello.set_incarnation(random_number());
  if (membership.role == group::Role::ps) hello.set_address(membership.reachable_address());
  return hello;
}

PsSynchronizer::Connect make_connect(const group::Membership& membership,
                                     const std::string& layout_fingerprint, spec::WireType wire) {
  const ps::LinkHello greeting{membership.uid, group::version(), layout_fingerprint, {}, wire, 0};
  return [greeting](const ps::LinkEnd& end,
                    const std::string& address) -> std::unique_ptr<ps::ShardLink> {
    ps::LinkHello hello = greeting;
    hello.shard = end.shard;
    if (end.memory) hello.shared_memory = end.memory->offer();
    auto stream = ps::make_grpc_link(group::make_channel(address), hello, end.bell);
    if (!end.memory) return stream;
    return ps::make_shm_link(std::move(stream), end,
                             "ps " + std::to_string(end.ps) + " (" + address + ")");
  };
}

}  // namespace muster::loop
