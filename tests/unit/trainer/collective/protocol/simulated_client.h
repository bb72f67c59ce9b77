#pragma once

#include "tests/unit/trainer/collective/protocol/process.h"

namespace muster::collective::protocol {

// A member's stream to the rendezvous, as group::RendezvousClient keeps it.
class SimulatedClient {
 public:
  SimulatedClient(World& world, const Process& process, int id, int rank)
      : world_(world), process_(process), id_(id), rank_(rank) {}

  // There is no stream, or one that has fallen silent, and somebody to open another to; or
  // something is to be said.
  bool ready() const;
  void act(const MemberState& state, bool leaving);
  // Something has changed that is to be said.
  void report_now() { nudged_ = true; }

  bool owns(int stream, Side side) const { return side == Side::client && stream == stream_; }
  // False where the rendezvous rejects this process.
  bool receive(const Message& message);

  const GroupView& view() const { return view_; }
  bool connected() const { return connected_; }
  // Nothing is left to be said to this rank 0.
  bool attends(int chief) const;

 private:
  bool wants_connection() const;
  int chief() const { return rank_ == 0 ? id_ : world_.process_at(0); }

  World& world_;
  const Process& process_;
  const int id_;
  const int rank_;
  int stream_ = -1;
  int server_ = -1;
  bool nudged_ = false;
  bool connected_ = false;
  GroupView view_;
};

}  // namespace muster::collective::protocol
