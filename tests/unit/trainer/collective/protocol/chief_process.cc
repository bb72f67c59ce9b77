#include "tests/unit/trainer/collective/protocol/chief_process.h"

#include <cstdlib>

#include "common/error.h"
#include "trainer/group/coordinator.h"
#include "trainer/group/position.h"

namespace muster::collective::protocol {

using Next = Formation::Next;

namespace {

group::PeerRegistry::Expected expected(const Setting& setting) {
  group::PeerRegistry::Expected expected;
  expected.chiefs = 1;
  expected.workers = setting.members - 1;
  expected.most_workers = setting.elastic() ? setting.most - 1 : setting.members - 1;
  expected.shards = 0;
  return expected;
}

Formation::Setup setup(const Setting& setting) {
  Formation::Setup setup;
  setup.members = setting.members;
  setup.least = setting.least;
  setup.replicas = setting.replicas;
  return setup;
}

}  // namespace

ChiefProcess::ChiefProcess(World& world, int id, int rank, int attempt)
    : Process(world, id, rank, attempt),
      registry_(expected(world.setting())),
      formation_(setup(world.setting()), {}),
      member_(world, *this, id, rank),
      saver_(world, id) {}

std::pair<uint64_t, uint64_t> ChiefProcess::held() const {
  return {member_.generation(), member_.position().step};
}

bool ChiefProcess::ready(int thread) const {
  switch (thread) {
    case kCoordinating:
      return coordinating();
    case kTraining:
      return training();
    case kSaving:
      return !saver_.idle();
    case kRendezvous:
      return member_.ready_to_attend();
    case kWatching:
      return member_.ready_to_watch();
    case kSilence:
      return silent_stream() >= 0;
    case kMuster:
      return !mustered_ && world_.setting().elastic() && formation_.next() == Next::gather &&
             !registry_changed_ && world_.all_attend(id_);
  }
  return false;
}

void ChiefProcess::act(int thread) {
  switch (thread) {
    case kCoordinating:
      return coordinate();
    case kTraining:
      return train();
    case kSaving:
      return saver_.act();
    case kRendezvous:
      return member_.attend();
    case kWatching:
      return member_.watch();
    case kSilence: {
      const int stream = silent_stream();
      registry_.gone(static_cast<uint64_t>(stream));
      peers_.erase(stream);
      registry_changed_ = true;
      return world_.network().close(stream, Side::server);
    }
    case kMuster:
      mustered_ = true;
      registry_changed_ = true;
      return;
  }
}

int ChiefProcess::silent_stream() const {
  for (const int stream : peers_) {
    const auto found = world_.network().streams().find(stream);
    if (found == world_.network().streams().end()) continue;
    if (world_.is_stopped(found->second.process(Side::client))) return stream;
  }
  return -1;
}

void ChiefProcess::receive(int stream, Side side, Message message) {
  const bool greeting = std::holds_alternative<PeerMessage>(message);
  if (side == Side::server && (greeting || peers_.contains(stream))) return attend(stream, message);
  if (!member_.receive(stream, side, message)) finish(false);
}

// As RendezvousServer does.
void ChiefProcess::attend(int stream, const Message& message) {
  const auto connection = static_cast<uint64_t>(stream);
  registry_changed_ = true;
  if (std::holds_alternative<End>(message)) {
    registry_.gone(connection);
    peers_.erase(stream);
    return;
  }
  const auto& peer = std::get<PeerMessage>(message);
  GroupMessage reply;
  if (peer.has_hello()) {
    reply.set_rejected(registry_.admit(connection, peer.hello(), {}));
    if (!reply.rejected().empty()) {
      world_.network().send(stream, Side::server, reply);
      return world_.network().close(stream, Side::server);
    }
    peers_.insert(stream);
    for (const uint64_t replaced : registry_.take_replaced())
      if (peers_.erase(static_cast<int>(replaced)) > 0)
        world_.network().close(static_cast<int>(replaced), Side::server);
  }
  if (!registry_.heard(connection, peer, {})) return world_.network().close(stream, Side::server);
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
    case Next::assemble:
    case Next::watch:
      return registry_changed_ || (renew_ && formation_.next() == Next::watch) ||
             formation_.superseded_by(world_.storage().newest_generation());
    default:
      return true;
  }
}

void ChiefProcess::coordinate() {
  const Next next = formation_.next();
  const bool looks =
      next == Next::claim || next == Next::gather || next == Next::assemble || next == Next::watch;
  if (looks && !leads_ && formation_.superseded_by(world_.storage().newest_generation()))
    return finish(false);
  // Whoever has looked may be slow to claim.
  if (next == Next::claim && !std::exchange(leads_, true)) return;
  leads_ = false;
  try {
    advance();
  } catch (const Unavailable&) {
    abandon();
  }
  if (formation_.next() == Next::claim) registry_changed_ = true;
}

void ChiefProcess::abandon() {
  if (!leased_.empty()) world_.storage().release(std::exchange(leased_, ""));
  formation_.renew();
}

// As collective::Coordinator does.
void ChiefProcess::advance() {
  switch (formation_.next()) {
    case Next::claim:
      registry_changed_ = true;
      update(group::suspend);
      return formation_.claimed(world_.storage().open_generation(formation_.above()));
    case Next::fence: {
      world_.storage().fence();
      const auto newest = world_.storage().newest();
      return formation_.fenced(newest ? newest->generation : 0);
    }
    case Next::watch:
      if (std::exchange(renew_, false)) return abandon();
      if (!leased_.empty()) world_.storage().release(std::exchange(leased_, ""));
      [[fallthrough]];
    case Next::gather:
    case Next::assemble: {
      registry_changed_ = false;
      const Formation::Time now =
          mustered_ ? Formation::Time(Formation::kMuster) : Formation::Time();
      const Next before = formation_.next();
      formation_.look(registry_, now);
      registry_changed_ |= formation_.next() != before;
      return;
    }
    case Next::choose:
      return choose();
    case Next::announce:
      update([&](GroupView& view) { *view.mutable_collective() = formation_.plan(); });
      tell("announces generation", formation_.plan().generation());
      registry_changed_ = true;
      return formation_.announced();
    case Next::run:
      return open();
    default:
      std::abort();  // no step of such a formation
  }
}

void ChiefProcess::choose() {
  const auto newest = world_.storage().newest();
  tell("loads for generation", formation_.plan().generation());
  if (!newest) return formation_.chosen(std::nullopt);
  leased_ = SimulatedStorage::name_of(*newest);
  world_.storage().lease(leased_);
  tell("restores step", newest->position.step);
  const auto workload = world_.books().workload(1);
  formation_.chosen(
      Formation::Checkpoint{leased_, group::to_message(workload.settled(newest->position))});
}

void ChiefProcess::open() {
  const CollectivePlan& plan = formation_.plan();
  world_.opened(plan);
  update([&](GroupView& view) {
    if (view.phase() == GroupView::FINISHED) return;
    *view.mutable_collective() = plan;
    view.set_generation(plan.generation());
    view.set_phase(GroupView::RUNNING);
  });
  tell("opened the group's generation", plan.generation());
  formation_.running();
  registry_changed_ = true;
}

bool ChiefProcess::training() const {
  if (ending_) return saver_.idle();
  if (member_.at() == Member::At::trained) return saver_.idle();
  return member_.ready() || world_.storage().final() != nullptr;
}

void ChiefProcess::train() {
  if (ending_ || world_.storage().final()) return end();
  const uint64_t step = member_.position().step;
  const bool due = member_.has_next() && step != saved_step_ &&
                   step % static_cast<uint64_t>(world_.setting().checkpoint_every) == 0;
  if (member_.at() == Member::At::trained) {
    saver_.begin(member_.generation(), member_.copy(), /*final=*/true);
    ending_ = true;
    return;
  }
  if (due && saver_.idle()) {
    saved_step_ = step;
    return saver_.begin(member_.generation(), member_.copy(), /*final=*/false);
  }
  try {
    member_.act();
  } catch (const Unavailable&) {
    finish(false);  // what it was to restore could not be read
  }
}

void ChiefProcess::end() {
  ending_ = false;
  if (world_.storage().final()) {
    update([](GroupView& view) { view.set_phase(GroupView::FINISHED); });
    return finish(true);
  }
  // As Coordinator::renew() does.
  if (saver_.result() == Saver::Result::name_taken) {
    renew_ = true;
    update(group::suspend);
  }
  member_.start();
}

}  // namespace muster::collective::protocol
