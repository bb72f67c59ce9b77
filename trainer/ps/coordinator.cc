#include "trainer/ps/coordinator.h"

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "trainer/group/backoff.h"
#include "trainer/ps/shard_host.h"

namespace muster::ps {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {
constexpr milliseconds kGlance{200};
constexpr milliseconds kOpening{120000};
constexpr milliseconds kRemind{30000};
constexpr milliseconds kLead{2000};  // between looks whether we still have it

class Superseded : public Unavailable {
 public:
  using Unavailable::Unavailable;
};
}  // namespace

Coordinator::Coordinator(group::RendezvousServer& rendezvous, Control& control,
                         const checkpoint::Store& store, Setup setup)
    : rendezvous_(rendezvous),
      control_(control),
      store_(store),
      setup_(std::move(setup)),
      formation_(setup_.shards, setup_.sync, setup_.request, setup_.copies),
      addresses_(setup_.addresses) {
  thread_ = std::thread([this] { run(); });
}

Coordinator::~Coordinator() {
  closing_ = true;
  control_.cancel();
  thread_.join();
}

void Coordinator::rethrow_failure() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void Coordinator::renew() {
  renew_ = true;
  rendezvous_.update(Formation::suspend);
}

// Does what is next. Throws as the storage and the shards do.
void Coordinator::advance() {
  using Next = Formation::Next;
  switch (formation_.next()) {
    case Next::claim:
      require_lead();
      rendezvous_.update(Formation::suspend);
      return formation_.claimed(
          group::open_generation(setup_.storage, formation_.above(), setup_.owner));
    case Next::fence:
      store_.fence();
      from_ = "what the shards hold";
      return formation_.fenced();
    case Next::gather:
    case Next::watch:
      return wait();
    case Next::choose:
      return choose();
    case Next::open:
      locate();
      formation_.opened(control_.open(formation_.openings(), kOpening));
      lease_.reset();
      return;
    case Next::announce:
    case Next::assign:
      return announce();
  }
}

void Coordinator::locate() {
  rendezvous_.inspect([&](const group::Roster& roster) {
    for (size_t ps = 0; ps < addresses_.size(); ++ps)
      if (const auto* peer = roster.ps(static_cast<int>(ps)))
        addresses_[ps] = peer->hello.address();
  });
  control_.locate(addresses_);
}

void Coordinator::announce() {
  const OpenRequest& opened = formation_.request();
  locate();
  control_.route(formation_.serving());
  rendezvous_.update([&](GroupView& view) {
    formation_.announce(view);
    view.mutable_ps_addresses()->Assign(addresses_.begin(), addresses_.end());
  });
  if (formation_.next() == Formation::Next::announce)
    log::info("generation " + std::to_string(opened.generation()) + " opened from " + from_ + ": " +
                  formation_.reason(),
              {{"generation", opened.generation()}, {"step", formation_.step()}});
  formation_.announced();
}

void Coordinator::require_lead() {
  looked_ = Clock::now();
  const uint64_t newest = group::newest_generation(setup_.storage);
  if (!formation_.superseded_by(newest)) return;
  group::require_of_job(setup_.storage, newest, setup_.owner);
  throw Superseded("we were taken for lost: generation " + std::to_string(newest) +
                   " of the group is another's");
}

// A storage that cannot be read is no reason to begin anew: nothing is published there either.
void Coordinator::glance_at_lead() {
  try {
    require_lead();
  } catch (const Superseded&) {
    throw;
  } catch (const Unavailable& error) {
    log::info(std::string("whether we lead is not known: ") + error.what());
  }
}

void Coordinator::choose() {
  const auto newest = store_.to_resume();
  if (!newest) {
    from_ = "the beginning";
    return formation_.chosen(std::nullopt);
  }
  from_ = newest->directory.filename();
  lease_ = store_.lease(*newest, "restore");
  if (!lease_) throw Unavailable(from_ + " was pruned");
  formation_.chosen(
      Formation::Checkpoint{"checkpoints/" + from_, to_message(setup_.resume_at(*newest))});
}

// Until something changes that the formation looks at.
void Coordinator::wait() {
  const Formation::Next before = formation_.next();
  if (before == Formation::Next::watch && renew_.exchange(false)) return formation_.renew();
  rendezvous_.inspect([&](const group::Roster& roster) { formation_.look(roster); });
  if (formation_.next() != before) {
    if (formation_.next() == Formation::Next::claim)
      log::info("a shard came back, was lost or was taken: opening the next generation");
    return;
  }
  if (Clock::now() - looked_ > kLead) glance_at_lead();
  if (before == Formation::Next::gather) remind();
  if (before == Formation::Next::watch) {
    listen_to_leaving();
    tell_copies();
  }
  rendezvous_.wait_for_change(kGlance);
}

void Coordinator::remind() {
  const auto now = Clock::now();
  if (now < remind_) return;
  remind_ = now + kRemind;
  std::string missing;
  rendezvous_.inspect([&](const group::Roster& roster) { missing = roster.missing(); });
  log::info("waiting for " + missing);
}

void Coordinator::tell_copies() {
  if (setup_.copies < 2 || setup_.shards < 2) return;
  int replicated = 0;
  rendezvous_.inspect([&](const group::Roster& roster) { replicated = roster.replicated(); });
  const int before = std::exchange(replicated_, replicated);
  if (before == replicated) return;
  const std::string text = std::to_string(replicated) + " of " + std::to_string(setup_.shards) +
                           " shards have a second copy";
  const bool whole = replicated == setup_.shards;
  const bool fewer = replicated < before;  // not those of a group that forms
  if (fewer || (whole && warned_)) {
    log::warning(text);
    warned_ = !whole;
  } else {
    log::info(text);
  }
}

void Coordinator::listen_to_leaving() {
  bool leaving = false;
  rendezvous_.inspect([&](const group::Roster& roster) { leaving = roster.shard_leaving(); });
  if (leaving && !asked_ && setup_.shard_leaving) setup_.shard_leaving();
  asked_ = leaving;
}

void Coordinator::run() {
  group::Backoff backoff;
  while (!closing_) {
    try {
      advance();
      if (formation_.next() != Formation::Next::watch) continue;
      backoff.reset();
      patience_.rest();
    } catch (const Superseded&) {
      {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
      }
      rendezvous_.update(Formation::step_down);
      return;
    } catch (const WriteError& error) {
      lease_.reset();
      formation_.failed();
      if (patience_.wait(error)) continue;
      // Ours alone to report: where we run next may be able to write.
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      return;
    } catch (const Unavailable& error) {
      if (closing_) return;
      log::warning(std::string("no generation could be opened: ") + error.what());
      lease_.reset();
      formation_.failed();
      std::this_thread::sleep_for(backoff.next());
    } catch (const Invalid& error) {
      {
        const std::lock_guard lock(mutex_);
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

}  // namespace muster::ps
