#include "trainer/loop/attend.h"

#include <random>

#include "trainer/group/address.h"
#include "trainer/group/grpc_server.h"
#include "trainer/ps/grpc_link.h"

namespace muster::loop {

namespace {

uint64_t random_number() {
constexpr size_t kLongestTraining = 1 << 20;  // bytes; a message has a limit

  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

Hello make_hello(const group::Membership& membership, const Training& training,
                 const std::string& layout_fingerprint) {
  Hello hello;
  hello.set_job_uid(membership.uid);
  hello.set_version(group::version());
  hello.set_training_fingerprint(training.fingerprint);
  hello.set_layout_fingerprint(layout_fingerprint);
  std::string text = training.json.dump();
  if (text.size() <= kLongestTraining) hello.set_training(std::move(text));
  hello.set_role(membership.role_name);
  hello.set_index(static_cast<uint32_t>(membership.index));
  hello.set_attempt(static_cast<uint32_t>(membership.attempt));
  hello.set_incarnation(random_number());
  return hello;
}

ps::Exchange::Connect make_connect(const group::Membership& membership,
                                   const std::string& layout_fingerprint) {
  const ps::LinkHello hello{membership.uid, group::version(), layout_fingerprint};
  return [addresses = membership.cluster.ps, hello](int shard, ps::Bell& bell) {
    return ps::make_grpc_link(group::make_channel(addresses.at(static_cast<size_t>(shard))), hello,
                              bell);
  };
}

}  // namespace muster::loop
