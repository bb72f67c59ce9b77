#include "tests/unit/trainer/collective/protocol/chief_process.h"

#include <cstdlib>

#include "common/error.h"

namespace muster::collective::protocol {

namespace {

group::PeerRegistry::Expected expected(const Setting& setting) {
  group::PeerRegistry::Expected expected;
  expected.chiefs = 1;
  expected.workers = setting.members - 1;
  expected.most_workers = setting.elastic() ? setting.most - 1 : setting.members - 1;
  expected.shards = 0;
  return expected;
}

CollectiveFormation::Setup setup(const Setting& setting) {
  CollectiveFormation::Setup setup;
  setup.members = setting.members;
  setup.least = setting.least;
  setup.replicas = setting.replicas;
  return setup;
}

}  // namespace

ChiefProcess::ChiefProcess(SimulatedJob& job, int id, Place place, int attempt)
    : Leader(job, id, place, attempt, expected(job.setting()), formation_),
      job_(job),
      formation_(setup(job.setting()), {}),
      member_(job, *this),
      saver_(job, id) {}

bool ChiefProcess::ready(int thread) const {
  switch (thread) {
    case kCoordinating:
      return coordinating();
    case kTraining:
      return training();
    case kSaving:
      return saver_.ready();
    case kRendezvous:
      return member_.ready_to_attend();
    case kWatching:
      return member_.ready_to_watch();
    case kSilence:
      return silent_stream() >= 0;
    case kMuster:
      return !mustered_ && job_.setting().elastic() && formation_.next() == Next::gather &&
             !changed_ && job_.all_attend(id_);
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
      lose(stream);
      return job_.network().close(stream, Side::server);
    }
    case kMuster:
      mustered_ = true;
      changed_ = true;
      return;
  }
}

void ChiefProcess::receive(int stream, Side side, Message message) {
  const bool greeting = std::holds_alternative<PeerMessage>(message);
  if (side == Side::server && (greeting || is_peer(stream))) return attend(stream, message);
  if (!member_.receive(stream, side, message)) finish(false);
}

void ChiefProcess::look() {
  const CollectiveFormation::Time now =
      mustered_ ? CollectiveFormation::Time(CollectiveFormation::kMuster)
                : CollectiveFormation::Time();
  const Next before = formation_.next();
  formation_.look(registry(), now);
  changed_ |= formation_.next() != before;
}

// Does what collective::CollectiveCoordinator does.
void ChiefProcess::advance() {
  switch (formation_.next()) {
    case Next::fence: {
      const auto newest = job_.storage().newest();
      return formation_.fenced(newest ? newest->generation : 0);
    }
    case Next::announce:
      update([&](GroupView& view) { formation_.announce(view); });
      tell("announces generation", formation_.plan().generation());
      changed_ = true;
      return formation_.announced();
    case Next::run:
      return open();
    default:
      std::abort();  // no step of such a formation
  }
}

checkpoint::Position ChiefProcess::resume_at(const checkpoint::Position& position) const {
  return job_.books().workload(1).within_epoch(position);
}

void ChiefProcess::open() {
  const CollectivePlan& plan = formation_.plan();
  job_.opened(plan);
  update([&](GroupView& view) { formation_.announce(view); });
  tell("opened the group's generation", plan.generation());
  formation_.running();
  changed_ = true;
}

bool ChiefProcess::training() const {
  if (ending_) return saver_.idle();
  if (member_.at() == Member::At::trained) return saver_.idle();
  return member_.ready() || job_.storage().final() != nullptr;
}

void ChiefProcess::train() {
  if (ending_ || job_.storage().final()) return end();
  const uint64_t step = member_.position().step;
  const bool due = member_.has_next() && step != saved_step_ &&
                   step % static_cast<uint64_t>(job_.setting().checkpoint_every) == 0;
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
  if (job_.storage().final()) {
    update([](GroupView& view) { view.set_phase(GroupView::FINISHED); });
    return finish(true);
  }
  if (saver_.result() == Saver::Result::name_taken) renew();
  member_.start();
}

}  // namespace muster::collective::protocol
