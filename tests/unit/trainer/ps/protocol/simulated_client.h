#pragma once

#include "tests/unit/trainer/ps/protocol/process.h"

namespace muster::ps::protocol {

// Returns what every replica says of itself.
Hello hello_of(const Process& process, int id);

// A replica's stream to the rendezvous, as group::RendezvousClient keeps it.
class SimulatedClient {
 public:
  SimulatedClient(World& world, const Process& process, int id)
      : world_(world), process_(process), id_(id) {}

  // Whether there is no stream, or only a silent one, and a process to connect to.
  bool wants_connection() const;
  void connect(const std::vector<ShardState>& shards);
  bool is_open() const { return stream_ >= 0; }
  void report(const std::vector<ShardState>& shards);

  bool owns(int stream) const { return stream == stream_; }
  // Returns false if the rendezvous rejects this process.
  bool receive(const Message& message);

  const GroupView& view() const { return view_; }
  bool connected() const { return connected_; }

 private:
  World& world_;
  const Process& process_;
  const int id_;
  int stream_ = -1;
  int server_ = -1;
  bool connected_ = false;
  GroupView view_;
};

}  // namespace muster::ps::protocol
