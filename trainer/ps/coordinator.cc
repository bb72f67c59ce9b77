#include "trainer/ps/coordinator.h"

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/log.h"
#include "trainer/ps/shard_host.h"

namespace muster::ps {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kGlance{200};
constexpr milliseconds kOpening{120000};
}  // namespace

Coordinator::Coordinator(group::RendezvousServer& rendezvous, Control& control,
                         const checkpoint::Store& store, Setup setup)
    : group::Coordinator(rendezvous, setup.storage, setup.job_uid),
      control_(control),
      store_(store),
      setup_(std::move(setup)),
      formation_(setup_.shards, setup_.sync, setup_.request, setup_.copies),
      addresses_(setup_.addresses) {
  start();
}

Coordinator::~Coordinator() {
  stop([this] { control_.cancel(); });
}

bool Coordinator::watching() const {
  return formation_.next() == Formation::Next::watch;
}

void Coordinator::abandon() {
  lease_.reset();
  formation_.failed();
}

void Coordinator::advance() {
  using Next = Formation::Next;
  switch (formation_.next()) {
    case Next::claim:
      require_lead();
      rendezvous().update(group::suspend);
      return formation_.claimed(open_generation(formation_.above()));
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
  rendezvous().inspect([&](const group::Roster& roster) {
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
  rendezvous().update([&](GroupView& view) {
    formation_.announce(view);
    view.mutable_ps_addresses()->Assign(addresses_.begin(), addresses_.end());
  });
  if (formation_.next() == Formation::Next::announce)
    log::info("generation " + std::to_string(opened.generation()) + " opened from " + from_ + ": " +
                  formation_.reason(),
              {{"generation", opened.generation()}, {"step", formation_.step()}});
  formation_.announced();
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
  if (before == Formation::Next::watch && take_renewal()) return formation_.renew();
  rendezvous().inspect([&](const group::Roster& roster) { formation_.look(roster); });
  if (formation_.next() != before) {
    if (formation_.next() == Formation::Next::claim)
      log::info("a shard came back, was lost or was taken: opening the next generation");
    return;
  }
  glance_at_lead();
  if (before == Formation::Next::gather) remind();
  if (before == Formation::Next::watch) {
    listen_to_leaving();
    tell_copies();
  }
  rendezvous().wait_for_change(kGlance);
}

void Coordinator::tell_copies() {
  if (setup_.copies < 2 || setup_.shards < 2) return;
  int replicated = 0;
  rendezvous().inspect([&](const group::Roster& roster) { replicated = roster.replicated(); });
  const int before = std::exchange(replicated_, replicated);
  if (before == replicated) return;
  const std::string text = std::to_string(replicated) + " of " + std::to_string(setup_.shards) +
                           " shards have a second copy";
  if (replicated < before) {  // not those of a group that forms
    log::warning(text);
  } else {
    log::info(text);
  }
}

void Coordinator::listen_to_leaving() {
  bool leaving = false;
  rendezvous().inspect([&](const group::Roster& roster) { leaving = roster.shard_leaving(); });
  if (leaving && !asked_ && setup_.shard_leaving) setup_.shard_leaving();
  asked_ = leaving;
}

}  // namespace muster::ps
