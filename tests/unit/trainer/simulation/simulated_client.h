#pragma once

#include "tests/unit/trainer/simulation/process.h"

namespace muster::simulation {

class World;

// A replica's stream to the rendezvous, as group::RendezvousClient keeps it.
class SimulatedClient {
 public:
  SimulatedClient(World& world, const Process& process) : world_(world), process_(process) {}

  // Whether there is no stream, or only a silent one, and a process to connect to; or something is
  // to be said.
  bool ready() const;
  // Says it, with a greeting on a new stream if one is needed.
  void act(PeerMessage message);
  // Called when something has changed that is to be said.
  void report_now() { nudged_ = true; }

  bool is_open() const { return stream_ >= 0; }
  bool owns(int stream, Side side) const { return side == Side::client && stream == stream_; }
  // Returns false if the rendezvous rejects this process.
  bool receive(const Message& message);

  const GroupView& view() const { return view_; }
  bool connected() const { return connected_; }
  // Whether nothing is left to be said to this rank 0.
  bool attends(int chief) const;

 private:
  bool wants_connection() const;
  int chief() const;

  World& world_;
  const Process& process_;
  int stream_ = -1;
  int server_ = -1;
  bool nudged_ = false;
  bool connected_ = false;
  GroupView view_;
};

}  // namespace muster::simulation
