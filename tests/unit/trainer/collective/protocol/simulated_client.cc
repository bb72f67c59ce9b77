#include "tests/unit/trainer/collective/protocol/simulated_client.h"

namespace muster::collective::protocol {

bool SimulatedClient::wants_connection() const {
  if (stream_ >= 0) return world_.is_silent(server_);
  return chief() >= 0;
}

bool SimulatedClient::ready() const {
  return wants_connection() || (nudged_ && stream_ >= 0);
}

void SimulatedClient::act(const MemberState& state, bool leaving) {
  PeerMessage message;
  *message.mutable_member() = state;
  message.set_leaving(leaving);
  nudged_ = false;
  if (wants_connection()) {
    if (stream_ >= 0) world_.network().close(stream_, Side::client);
    connected_ = false;
    server_ = chief();
    stream_ = world_.network().connect(id_, server_);
    *message.mutable_hello() = process_.hello();
  }
  world_.network().send(stream_, Side::client, message);
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

}  // namespace muster::collective::protocol
