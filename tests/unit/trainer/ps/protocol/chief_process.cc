#include "tests/unit/trainer/ps/protocol/chief_process.h"

#include <cstdlib>

#include "common/error.h"
#include "trainer/ps/shard/replicated_shard.h"

namespace muster::ps::protocol {

namespace {

group::PeerRegistry::Expected expected(const Setting& setting) {
  group::PeerRegistry::Expected expected;
  expected.chiefs = 1;
  expected.workers = setting.members - 1;
  expected.shards = setting.shards;
  return expected;
}

OpenRequest common(SimulatedJob& job) {
  OpenRequest request;
  request.set_members(static_cast<uint32_t>(job.setting().members));
  request.set_tickets_per_epoch(job.books().tickets_per_epoch());
  request.set_total_tickets(job.books().total());
  return request;
}

}  // namespace

ChiefProcess::ChiefProcess(SimulatedJob& job, int id, Place place, int attempt)
    : Leader(job, id, place, attempt, expected(job.setting()), formation_),
      job_(job),
      formation_(job.setting().shards, job.setting().sync, common(job), job.setting().copies),
      opening_(job, id),
      member_(job, id, 0),
      copying_calls_(job, id),
      saver_(job, id) {}

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

void ChiefProcess::receive(int stream, Side, Message message) {
  if (opening_.receive(stream, message) || copying_calls_.receive(stream, message)) return;
  if (saver_.receive(stream, message) || member_.receive(stream, message)) return;
  attend(stream, message);
}

// Does what ps::PsCoordinator does.
void ChiefProcess::advance() {
  switch (formation_.next()) {
    case Next::fence:
      return formation_.fenced();
    case Next::open:
      return open();
    case Next::assign:
    case Next::announce:
      update([&](GroupView& view) { formation_.announce(view); });
      if (formation_.next() == Next::announce) {
        tell("opened the group's generation", formation_.request().generation());
        job_.opened(formation_.request().generation());
      }
      return formation_.announced();
    default:
      std::abort();  // no step of such a formation
  }
}

void ChiefProcess::open() {
  if (!opening_.active()) {
    std::vector<OpenRequest> requests;
    std::vector<int> to;
    for (const PsFormation::Opening& opening : formation_.openings()) {
      requests.push_back(opening.request);
      to.push_back(opening.ps);
    }
    return opening_.start(requests, to);
  }
  changed_ = true;
  formation_.opened(opening_.take<OpenReply>());
}

bool ChiefProcess::training() const {
  if (copying_ != Copying::no) return copying_calls_.answered();
  if (final_) return saver_.idle();
  if (member_.state() == Member::State::finished) return saver_.idle() || member_.ready(view());
  return member_.ready(view()) || job_.storage().final() != nullptr;
}

void ChiefProcess::train() {
  if (copying_ != Copying::no) return copied();
  if (final_ || job_.storage().final()) return save_or_end();
  const bool due = member_.step() != copied_step_ &&
                   member_.step() % static_cast<uint64_t>(job_.setting().checkpoint_every) == 0;
  if (member_.state() == Member::State::ready && due && saver_.idle()) return copy(Copying::yes);
  if (member_.state() == Member::State::finished && !member_.ready(view()))
    return copy(Copying::final);
  member_.act(view());
}

void ChiefProcess::copy(Copying what) {
  copying_ = what;
  copied_step_ = member_.step();
  copies_.clear();
  // With asynchronous shards, shard 0 is asked first: see SnapshotRequest.
  ask_for_copies(job_.setting().sync ? static_cast<size_t>(job_.setting().shards) : 1);
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
    const auto shards = static_cast<size_t>(job_.setting().shards);
    if (copies_.size() < shards) {
      copying_ = last ? Copying::final : Copying::yes;
      return ask_for_copies(shards - copies_.size());
    }
    const auto& replies = copies_;
    SimulatedStorage::Folder manifest;
    manifest.generation = member_.generation();
    manifest.final = last;
    manifest.position = from_message(replies[0].position());
    std::vector<uint64_t> steps;
    for (const SnapshotReply& reply : replies) steps.push_back(reply.state().step());
    if (job_.setting().sync && !common_step(replies, member_.step()))
      throw Unavailable("the shards do not agree on a step");
    saver_.begin(std::move(manifest), std::move(steps), formation_.serving());
    final_ = last;
  } catch (const Unavailable&) {
    if (last) member_.leave();
  }
}

void ChiefProcess::save_or_end() {
  final_ = false;
  if (!job_.storage().final()) {
    if (saver_.result() == Saver::Result::name_taken) renew();
    return member_.leave();
  }
  update([](GroupView& view) { view.set_phase(GroupView::FINISHED); });
  finish(true);
}

}  // namespace muster::ps::protocol
