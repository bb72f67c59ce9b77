#pragma once

#include <functional>
#include <set>

#include "tests/unit/trainer/simulation/world.h"
#include "trainer/group/formation.h"
#include "trainer/group/peer_registry.h"

namespace muster::simulation {

// Rank 0's rendezvous, and its duty to the group: what group::RendezvousServer and
// group::Coordinator do.
class Leader : public Process {
 protected:
  using Next = group::Formation::Next;

  // The formation must live as long as the leader; it need not be constructed yet.
  Leader(World& world, int id, Place place, int attempt, group::PeerRegistry::Expected expected,
         group::Formation& formation);

  // Call the formation's look(), and do the next step unless it is claiming, choosing or looking.
  virtual void look() = 0;
  virtual void advance() = 0;  // throws Unavailable
  virtual bool may_advance() const { return true; }
  virtual checkpoint::Position resume_at(const checkpoint::Position& position) const {
    return position;
  }

  bool coordinating() const;  // coordinate() has something to do
  void coordinate();
  // Asks for the next generation.
  void renew();

  // Takes a message of a peer, or what comes on a stream that nobody here knows any more.
  void attend(int stream, const Message& message);
  bool is_peer(int stream) const { return peers_.contains(stream); }
  void update(const std::function<void(GroupView&)>& change);
  const GroupView& view() const { return view_; }
  const group::PeerRegistry& registry() const { return registry_; }
  // Returns the stream of a peer that has stopped; -1: there is none.
  int silent_stream() const;
  void lose(int stream);  // a peer's, which ends or is ended

  bool changed_ = true;  // the formation has not looked at the registry since it changed

 private:
  bool looks() const;
  void step();
  void choose();

  World& world_;
  group::Formation& formation_;
  group::PeerRegistry registry_;
  GroupView view_;
  std::set<int> peers_;  // streams that were admitted
  bool leads_ = false;   // was looked at just now
  bool renew_ = false;
  std::string leased_;
};

}  // namespace muster::simulation
