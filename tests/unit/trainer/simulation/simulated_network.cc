#include "tests/unit/trainer/simulation/simulated_network.h"

#include <utility>

namespace muster::simulation {

namespace {
Side other(Side side) {
  return side == Side::client ? Side::server : Side::client;
}
}  // namespace

int SimulatedNetwork::connect(int client, int server, bool call) {
  const int id = next_++;
  Stream& stream = streams_[id];
  stream.ends[0] = client;
  stream.ends[1] = server;
  stream.call = call;
  if (server < 0) close(id, Side::server);
  return id;
}

void SimulatedNetwork::send(int id, Side from, Message message) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  if (stream.is_open(other(from)) && stream.is_open(from))
    stream.to(other(from)).push_back(std::move(message));
}

void SimulatedNetwork::close(int id, Side side) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || !found->second.is_open(side)) return;
  Stream& stream = found->second;
  stream.open[static_cast<int>(side)] = false;
  stream.to(side).clear();
  if (stream.is_open(other(side))) stream.to(other(side)).push_back(End());
  tidy(id);
}

void SimulatedNetwork::cut(int id) {
  Stream& stream = streams_.at(id);
  for (const Side side : {Side::client, Side::server}) {
    stream.to(side).clear();
    if (stream.is_open(side)) stream.to(side).push_back(End());
  }
}

void SimulatedNetwork::drop(int process, const std::function<bool(int nth)>& lose) {
  std::vector<int> ids;
  for (const auto& [id, stream] : streams_) ids.push_back(id);
  int nth = 0;
  for (const int id : ids)
    for (const Side side : {Side::client, Side::server}) {
      const auto found = streams_.find(id);
      if (found == streams_.end() || found->second.process(side) != process) continue;
      Stream& stream = found->second;
      if (lose(nth++) && !stream.to(other(side)).empty()) {
        const bool over = !stream.is_open(side);
        stream.to(other(side)).clear();
        if (over) stream.to(other(side)).push_back(End());
      }
      close(id, side);
    }
}

Message SimulatedNetwork::take(int id, Side side) {
  Stream& stream = streams_.at(id);
  Message message = std::move(stream.to(side).front());
  stream.to(side).pop_front();
  if (std::holds_alternative<End>(message)) {
    stream.open[static_cast<int>(side)] = false;
    stream.to(side).clear();
    tidy(id);
  }
  return message;
}

void SimulatedNetwork::tidy(int id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  if (!found->second.open[0] && !found->second.open[1]) streams_.erase(found);
}

}  // namespace muster::simulation
