#include "trainer/group/coordinator.h"

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "trainer/folder/generations.h"
#include "trainer/folder/owner.h"
#include "trainer/group/backoff.h"
#include "trainer/group/position.h"

namespace muster::group {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kRemind{30000};
constexpr milliseconds kGlance{200};
constexpr milliseconds kLead{2000};  // time between checks that we still lead

class Superseded : public Unavailable {
 public:
  using Unavailable::Unavailable;
};
}  // namespace

Coordinator::Coordinator(RendezvousServer& rendezvous, const checkpoint::Store& store, Setup setup)
    : rendezvous_(rendezvous), store_(store), setup_(std::move(setup)) {}

Coordinator::~Coordinator() = default;

void Coordinator::start() {
  thread_ = std::thread([this] { run(); });
}

void Coordinator::stop(const std::function<void()>& cancel) {
  closing_ = true;
  cancel();
  thread_.join();
}

void Coordinator::rethrow_failure() const {
  const MutexLock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void Coordinator::renew() {
  renew_ = true;
  rendezvous_.update(suspend);
}

uint64_t Coordinator::hold() {
  // Without this flag the coordinator's thread, which locks the mutex again right after releasing
  // it, could prevent this thread from ever getting the mutex.
  held_ = true;
  const MutexLock lock(advancing_);
  return newest_;
}

void Coordinator::advance_unless_held() {
  if (!held_) {
    const MutexLock lock(advancing_);
    if (!held_) return advance();
  }
  rendezvous_.wait_for_change(kGlance);
}

void Coordinator::advance() {
  switch (formation().next()) {
    case Formation::Next::claim:
      return claim();
    case Formation::Next::choose:
      return choose();
    case Formation::Next::gather:
    case Formation::Next::assemble:
    case Formation::Next::watch:
      return wait();
    case Formation::Next::fence:
      store_.fence();
      [[fallthrough]];
    default:
      return act();
  }
}

void Coordinator::claim() {
  require_lead();
  rendezvous_.update(suspend);
  newest_ = folder::open_generation(setup_.storage, formation().above());
  rendezvous_.opened(newest_);
  formation().claimed(newest_);
}

void Coordinator::choose() {
  const auto newest = store_.to_resume();
  if (!newest) return formation().chosen(std::nullopt);
  const std::string folder = newest->directory.filename();
  lease_ = store_.lease(*newest, "restore");
  if (!lease_) throw Unavailable(folder + " was pruned");
  formation().chosen(
      Formation::Checkpoint{"checkpoints/" + folder, to_message(setup_.resume_at(*newest))});
}

// Waits until something changes that matters to the formation.
void Coordinator::wait() {
  const Formation::Next before = formation().next();
  const bool watching = before == Formation::Next::watch;
  // Peers that leave now are not lost.
  if (rendezvous_.view().phase() == GroupView::FINISHED)
    return rendezvous_.wait_for_change(kGlance);
  if (watching && renew_.exchange(false)) return formation().renew();
  rendezvous_.inspect([&](const PeerRegistry& registry) { look(registry); });
  if (formation().next() == Formation::Next::claim && watching)
    log::info(change() + ": opening the next generation");
  if (formation().next() != before) return;
  glance_at_lead();
  if (before == Formation::Next::gather || (watching && needs_all())) remind();
  if (watching) {
    lease_.reset();
    watch();
  }
  rendezvous_.wait_for_change(kGlance);
}

void Coordinator::abandon() {
  lease_.reset();
  formation().renew();
}

void suspend(GroupView& view) {
  if (view.phase() == GroupView::RUNNING) view.set_phase(GroupView::FORMING);
}

void step_down(GroupView& view) {
  if (view.phase() != GroupView::RUNNING && view.phase() != GroupView::FORMING) return;
  view.set_phase(GroupView::FORMING);
  view.set_generation(0);
}

void Coordinator::require_lead() {
  looked_ = Clock::now();
  const uint64_t newest = folder::newest_generation(setup_.storage);
  rendezvous_.opened(newest);
  if (!formation().superseded_by(newest)) return;
  folder::require_no_other_owner(setup_.storage, setup_.job_uid);
  throw Superseded("we were taken for lost: generation " + std::to_string(newest) +
                   " of the group is another's");
}

void Coordinator::glance_at_lead() {
  if (Clock::now() - looked_ <= kLead) return;
  try {
    require_lead();
  } catch (const Superseded&) {
    throw;
  } catch (const Unavailable& error) {
    log::info(std::string("whether we lead is not known: ") + error.what());
  }
}

void Coordinator::remind() {
  std::string missing;
  rendezvous_.inspect([&](const PeerRegistry& registry) { missing = registry.missing(); });
  const auto now = Clock::now();
  if (missing == missing_ && (missing.empty() || now < remind_)) return;
  missing_ = missing;
  remind_ = now + kRemind;
  if (!missing.empty()) log::info("waiting for " + missing);
}

void Coordinator::run() {
  Backoff backoff;
  while (!closing_) {
    try {
      advance_unless_held();
      if (formation().next() != Formation::Next::watch) continue;
      backoff.reset();
      patience_.rest();
    } catch (const Superseded&) {
      {
        const MutexLock lock(mutex_);
        failure_ = std::current_exception();
      }
      rendezvous_.update(step_down);
      return;
    } catch (const WriteError& error) {
      abandon();
      if (patience_.wait(error)) continue;
      // Only this process reports the error: on its next machine the storage may be writable.
      const MutexLock lock(mutex_);
      failure_ = std::current_exception();
      return;
    } catch (const Unavailable& error) {
      if (closing_) return;
      log::warning(std::string("no generation could be opened: ") + error.what());
      abandon();
      std::this_thread::sleep_for(backoff.next());
    } catch (const Invalid& error) {
      {
        const MutexLock lock(mutex_);
        failure_ = std::current_exception();
      }
      fail(error.exit_code(), error.what());
      return;
    }
  }
}

void Coordinator::fail(int exit_code, const std::string& message) {
  rendezvous_.update([&](GroupView& view) {
    view.set_phase(GroupView::FAILED);
    view.set_exit_code(static_cast<uint32_t>(exit_code));
    view.set_message(message);
  });
}

}  // namespace muster::group
