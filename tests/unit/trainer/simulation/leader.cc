#include "tests/unit/trainer/simulation/leader.h"

#include <utility>

#include "common/error.h"
#include "trainer/group/coordinator.h"
#include "trainer/group/position.h"

namespace muster::simulation {

Leader::Leader(World& world, int id, Place place, int attempt,
               group::PeerRegistry::Expected expected, group::Formation& formation)
    : Process(world, id, place, attempt),
      world_(world),
      formation_(formation),
      registry_(std::move(expected)) {}

void Leader::attend(int stream, const Message& message) {
  const auto connection = static_cast<uint64_t>(stream);
  changed_ = true;
  if (std::holds_alternative<End>(message)) return lose(stream);
  const auto* peer = std::get_if<PeerMessage>(&message);
  if (!peer) return;  // the answer to a call that was given up
  GroupMessage reply;
  if (peer->has_hello()) {
    reply.set_rejected(registry_.admit(connection, peer->hello(), {}));
    if (!reply.rejected().empty()) {
      world_.network().send(stream, Side::server, reply);
      return world_.network().close(stream, Side::server);
    }
    peers_.insert(stream);
    for (const uint64_t replaced : registry_.take_replaced())
      if (peers_.erase(static_cast<int>(replaced)) > 0)
        world_.network().close(static_cast<int>(replaced), Side::server);
  }
  if (!registry_.heard(connection, *peer, {})) return world_.network().close(stream, Side::server);
  *reply.mutable_view() = view_;
  world_.network().send(stream, Side::server, reply);
}

void Leader::update(const std::function<void(GroupView&)>& change) {
  change(view_);
  GroupMessage message;
  *message.mutable_view() = view_;
  for (const int stream : peers_) world_.network().send(stream, Side::server, message);
}

int Leader::silent_stream() const {
  for (const int stream : peers_) {
    const auto found = world_.network().streams().find(stream);
    if (found == world_.network().streams().end()) continue;
    if (world_.is_stopped(found->second.process(Side::client))) return stream;
  }
  return -1;
}

void Leader::lose(int stream) {
  registry_.gone(static_cast<uint64_t>(stream));
  peers_.erase(stream);
  changed_ = true;
}

bool Leader::looks() const {
  const Next next = formation_.next();
  return next == Next::gather || next == Next::assemble || next == Next::watch;
}

bool Leader::coordinating() const {
  if (!looks()) return may_advance();
  return changed_ || (renew_ && formation_.next() == Next::watch) ||
         formation_.superseded_by(world_.storage().newest_generation());
}

void Leader::coordinate() {
  const bool claims = formation_.next() == Next::claim;
  if ((claims || looks()) && !leads_ &&
      formation_.superseded_by(world_.storage().newest_generation()))
    return finish(false);
  // A process that has looked may be slow to claim.
  if (claims && !std::exchange(leads_, true)) return;
  leads_ = false;
  try {
    step();
  } catch (const Unavailable&) {
    formation_.renew();
  }
  if (formation_.next() != Next::claim) return;
  changed_ = true;
  world_.storage().release(std::exchange(leased_, ""));
}

void Leader::step() {
  switch (formation_.next()) {
    case Next::claim:
      changed_ = true;
      update(group::suspend);
      return formation_.claimed(world_.storage().open_generation(formation_.above()));
    case Next::choose:
      return choose();
    case Next::watch:
      if (std::exchange(renew_, false)) return formation_.renew();
      world_.storage().release(std::exchange(leased_, ""));
      [[fallthrough]];
    case Next::gather:
    case Next::assemble:
      changed_ = false;
      return look();
    case Next::fence:
      world_.storage().fence();
      [[fallthrough]];
    default:
      return advance();
  }
}

void Leader::choose() {
  const auto newest = world_.storage().newest();
  tell("loads for generation", world_.storage().newest_generation());
  if (!newest) return formation_.chosen(std::nullopt);
  leased_ = SimulatedStorage::name_of(*newest);
  world_.storage().lease(leased_);
  tell("restores step", newest->position.step);
  formation_.chosen(
      group::Formation::Checkpoint{leased_, group::to_message(resume_at(newest->position))});
}

void Leader::renew() {
  renew_ = true;
  update(group::suspend);
}

}  // namespace muster::simulation
