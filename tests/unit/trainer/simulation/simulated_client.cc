#include "tests/unit/trainer/simulation/simulated_client.h"

#include "tests/unit/trainer/simulation/world.h"

namespace muster::simulation {

// Rank 0 attends at its own rendezvous, also when another process has its place.
int SimulatedClient::chief() const {
  return process_.place() == kChief ? process_.id() : world_.process_at(kChief);
}

bool SimulatedClient::wants_connection() const {
  if (stream_ >= 0) return world_.is_silent(server_);
  return chief() >= 0;
}

bool SimulatedClient::ready() const {
  return wants_connection() || (nudged_ && stream_ >= 0);
}

void SimulatedClient::act(PeerMessage message) {
  nudged_ = false;
  if (wants_connection()) {
    if (stream_ >= 0) world_.network().close(stream_, Side::client);
    connected_ = false;
    server_ = chief();
    stream_ = world_.network().connect(process_.id(), server_);
    *message.mutable_hello() = process_.hello();
  }
  world_.network().send(stream_, Side::client, std::move(message));
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

bool SimulatedClient::attends(int chief) const {
  if (stream_ < 0 || server_ != chief) return false;
  const auto found = world_.network().streams().find(stream_);
  if (found == world_.network().streams().end()) return false;
  if (found->second.held) return true;  // as if it were lost
  return connected_ && !nudged_ && found->second.to(Side::server).empty();
}

}  // namespace muster::simulation
