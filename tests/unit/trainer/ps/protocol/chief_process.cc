#include "tests/unit/trainer/ps/protocol/chief_process.h"

#include <cstdlib>

#include "tests/unit/trainer/ps/protocol/simulated_client.h"
#include "trainer/group/coordinator.h"
#include "trainer/ps/shard/hosted_shard.h"

namespace muster::ps::protocol {

using Side = SimulatedNetwork::Side;
using Next = Formation::Next;

namespace {

group::PeerRegistry::Expected expected(const Setting& setting) {
  group::PeerRegistry::Expected expected;
  expected.chiefs = 1;
  expected.workers = setting.members - 1;
  expected.shards = setting.shards;
  return expected;
}

OpenRequest common(World& world) {
  OpenRequest request;
  request.set_members(static_cast<uint32_t>(world.setting().members));
  request.set_tickets_per_epoch(world.books().tickets_per_epoch());
  request.set_total_tickets(world.books().total());
  return request;
}

}  // namespace

ChiefProcess::ChiefProcess(World& world, int id, Place place, int attempt)
    : Process(world, id, place, attempt),
      registry_(expected(world.setting())),
      formation_(world.setting().shards, world.setting().sync, common(world),
                 world.setting().copies),
      opening_(world, id),
      member_(world, id, 0),
      copying_calls_(world, id),
      saver_(world, id) {}

bool ChiefProcess::ready(int thread) const {
  if (thread == kCoordinating) return coordinating();
  if (thread == kTraining) return training();
  return saver_.ready();
}

void ChiefProcess::act(int thread) {
  if (thread == kCoordinating) return coordinate();
  if (thread == kTraining) return train();
  saver_.act();
}

void ChiefProcess::receive(int stream, Message message) {
  if (opening_.receive(stream, message) || copying_calls_.receive(stream, message)) return;
  if (saver_.receive(stream, message) || member_.receive(stream, message)) return;
  attend(stream, message);
}

// Does what RendezvousServer does.
void ChiefProcess::attend(int stream, const Message& message) {
  const auto connection = static_cast<uint64_t>(stream);
  registry_changed_ = true;
  if (std::holds_alternative<End>(message)) {
    registry_.gone(connection);
    peers_.erase(stream);
    return;
  }
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

void ChiefProcess::update(const std::function<void(GroupView&)>& change) {
  change(view_);
  GroupMessage message;
  *message.mutable_view() = view_;
  for (const int stream : peers_) world_.network().send(stream, Side::server, message);
}

bool ChiefProcess::coordinating() const {
  switch (formation_.next()) {
    case Next::gather:
    case Next::watch:
      return registry_changed_ || formation_.superseded_by(world_.storage().newest_generation());
    case Next::open:
      return !opening_.active() || opening_.answered();
    default:
      return true;
  }
}

void ChiefProcess::coordinate() {
  const Next next = formation_.next();
  const bool looks = next == Next::claim || next == Next::gather || next == Next::watch;
  if (looks && !leads_ && formation_.superseded_by(world_.storage().newest_generation()))
    return finish(false);
  // A process that has looked may be slow to claim.
  if (next == Next::claim && !std::exchange(leads_, true)) return;
  leads_ = false;
  try {
    advance();
  } catch (const Unavailable&) {
    formation_.renew();
    registry_changed_ = true;
  }
  if (formation_.next() == Next::claim && !leased_.empty()) {
    world_.storage().release(leased_);
    leased_.clear();
  }
}

// Does what ps::Coordinator does.
void ChiefProcess::advance() {
  switch (formation_.next()) {
    case Next::gather:
    case Next::watch:
      registry_changed_ = false;
      return formation_.look(registry_);
    case Next::claim:
      registry_changed_ = true;
      update(group::suspend);
      formation_.claimed(world_.storage().open_generation(formation_.above()));
      return;
    case Next::fence:
      world_.storage().fence();
      return formation_.fenced();
    case Next::choose:
      return choose();
    case Next::open:
      return open();
    case Next::assign:
      update([&](GroupView& view) { formation_.announce(view); });
      return formation_.announced();
    case Next::announce:
      update([&](GroupView& view) { formation_.announce(view); });
      tell("opened the group's generation", formation_.request().generation());
      return formation_.announced();
    default:
      std::abort();  // no step of such a formation
  }
}

void ChiefProcess::choose() {
  const auto newest = world_.storage().newest();
  tell("loads for generation", formation_.request().generation());
  if (!newest) return formation_.chosen(std::nullopt);
  leased_ = SimulatedStorage::name_of(*newest);
  world_.storage().lease(leased_);
  tell("restores step", newest->position.step);
  formation_.chosen(Formation::Checkpoint{leased_, to_message(newest->position)});
}

void ChiefProcess::open() {
  if (!opening_.active()) {
    std::vector<OpenRequest> requests;
    std::vector<int> to;
    for (const Formation::Opening& opening : formation_.openings()) {
      requests.push_back(opening.request);
      to.push_back(opening.ps);
    }
    return opening_.start(requests, to);
  }
  registry_changed_ = true;
  formation_.opened(opening_.take<OpenReply>());
}

bool ChiefProcess::training() const {
  if (copying_ != Copying::no) return copying_calls_.answered();
  if (final_) return saver_.idle();
  if (member_.state() == Member::State::finished) return saver_.idle() || member_.ready(view_);
  return member_.ready(view_) || world_.storage().final() != nullptr;
}

void ChiefProcess::train() {
  if (copying_ != Copying::no) return copied();
  if (final_ || world_.storage().final()) return save_or_end();
  const bool due = member_.step() != copied_step_ &&
                   member_.step() % static_cast<uint64_t>(world_.setting().checkpoint_every) == 0;
  if (member_.state() == Member::State::ready && due && saver_.idle()) return copy(Copying::yes);
  if (member_.state() == Member::State::finished && !member_.ready(view_))
    return copy(Copying::final);
  member_.act(view_);
}

void ChiefProcess::copy(Copying what) {
  copying_ = what;
  copied_step_ = member_.step();
  copies_.clear();
  // With asynchronous shards, shard 0 is asked first: see SnapshotRequest.
  ask_for_copies(world_.setting().sync ? static_cast<size_t>(world_.setting().shards) : 1);
}

void ChiefProcess::ask_for_copies(size_t count) {
  std::vector<SnapshotRequest> requests(count);
  std::vector<int> to;
  for (size_t i = 0; i < count; ++i) {
    const size_t shard = copies_.size() + i;
    requests[i].set_generation(member_.generation());
    requests[i].set_shard(static_cast<uint32_t>(shard));
    to.push_back(formation_.serving()[shard]);
  }
  copying_calls_.start(requests, to);
}

// Does what PsSynchronizer::snapshot() does, but without its patience.
void ChiefProcess::copied() {
  const bool last = std::exchange(copying_, Copying::no) == Copying::final;
  try {
    for (auto& reply : copying_calls_.take<SnapshotReply>()) copies_.push_back(std::move(reply));
    const auto shards = static_cast<size_t>(world_.setting().shards);
    if (copies_.size() < shards) {
      copying_ = last ? Copying::final : Copying::yes;
      return ask_for_copies(shards - copies_.size());
    }
    const auto& replies = copies_;
    Saver::Task task;
    task.serving = formation_.serving();
    task.manifest.generation = member_.generation();
    task.manifest.final = last;
    task.manifest.position = from_message(replies[0].position());
    for (const SnapshotReply& reply : replies) task.shard_steps.push_back(reply.state().step());
    if (world_.setting().sync && !common_step(replies, member_.step()))
      throw Unavailable("the shards do not agree on a step");
    saver_.begin(std::move(task));
    final_ = last;
  } catch (const Unavailable&) {
    if (last) member_.leave();
  }
}

void ChiefProcess::save_or_end() {
  final_ = false;
  if (!world_.storage().final()) {
    // This is what Coordinator::renew() does.
    if (saver_.result() == Saver::Result::name_taken && formation_.next() == Next::watch) {
      formation_.renew();
      update(group::suspend);
    }
    return member_.leave();
  }
  update([](GroupView& view) { view.set_phase(GroupView::FINISHED); });
  finish(true);
}

}  // namespace muster::ps::protocol
