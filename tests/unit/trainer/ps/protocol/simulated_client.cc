#include "tests/unit/trainer/ps/protocol/simulated_client.h"

namespace muster::ps::protocol {

namespace {
constexpr Place kChief{Place::Role::chief, 0};
}

std::string Place::text() const {
  const char* names[] = {"ps", "chief", "worker"};
  return std::string(names[static_cast<int>(role)]) + " " + std::to_string(index);
}

Hello hello_of(const Process& process, int id) {
  const char* names[] = {"ps", "chief", "worker"};
  Hello hello;
  hello.set_role(names[static_cast<int>(process.place().role)]);
  hello.set_address("10.0.0.1:2222");
  hello.set_index(static_cast<uint32_t>(process.place().index));
  hello.set_attempt(static_cast<uint32_t>(process.attempt()));
  hello.set_incarnation(static_cast<uint64_t>(id) + 1);
  return hello;
}

bool SimulatedClient::wants_connection() const {
  if (stream_ >= 0) return world_.is_silent(server_);
  return world_.process_at(kChief) >= 0;
}

void SimulatedClient::connect(const std::vector<ShardState>& shards) {
  if (stream_ >= 0) world_.network().close(stream_, SimulatedNetwork::Side::client);
  connected_ = false;
  server_ = world_.process_at(kChief);
  stream_ = world_.network().connect(id_, server_);
  PeerMessage first;
  *first.mutable_hello() = hello_of(process_, id_);
  first.mutable_shards()->Add(shards.begin(), shards.end());
  world_.network().send(stream_, SimulatedNetwork::Side::client, first);
}

void SimulatedClient::report(const std::vector<ShardState>& shards) {
  PeerMessage message;
  message.mutable_shards()->Add(shards.begin(), shards.end());
  world_.network().send(stream_, SimulatedNetwork::Side::client, message);
}

bool SimulatedClient::receive(const Message& message) {
  if (std::holds_alternative<End>(message)) {
    stream_ = -1;
    connected_ = false;
    return true;
  }
  const GroupMessage& group = std::get<GroupMessage>(message);
  if (!group.rejected().empty()) return false;
  view_ = group.view();
  connected_ = true;
  return true;
}

}  // namespace muster::ps::protocol
