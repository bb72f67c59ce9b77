#include "trainer/ps/group/ps_coordinator.h"

#include <filesystem>
#include <utility>

#include "common/program/log.h"

namespace muster::ps {

namespace {
constexpr std::chrono::milliseconds kOpening{120000};

// Returns, for the log, what a generation begins with.
std::string origin_of(const OpenRequest& opened) {
  if (opened.content() == OpenRequest::KEEP) return "what the shards hold";
  if (opened.content() == OpenRequest::INITIALIZE) return "the beginning";
  return std::filesystem::path(opened.checkpoint()).filename();
}
}  // namespace

PsCoordinator::PsCoordinator(group::RendezvousServer& rendezvous, Control& control,
                             const checkpoint::Store& store, Setup setup)
    : group::Coordinator(rendezvous, store, setup),
      control_(control),
      setup_(std::move(setup)),
      formation_(setup_.shards, setup_.sync, setup_.request, setup_.copies),
      addresses_(setup_.addresses) {
  start();
}

PsCoordinator::~PsCoordinator() {
  stop([this] { control_.cancel(); });
}

void PsCoordinator::act() {
  if (formation_.next() == PsFormation::Next::fence) return formation_.fenced();
  if (formation_.next() != PsFormation::Next::open) return announce();
  locate();
  formation_.opened(control_.open(formation_.openings(), kOpening));
}

void PsCoordinator::locate() {
  rendezvous().inspect([&](const group::PeerRegistry& registry) {
    for (size_t ps = 0; ps < addresses_.size(); ++ps)
      if (const auto* peer = registry.ps(static_cast<int>(ps)))
        addresses_[ps] = peer->hello.address();
  });
  control_.locate(addresses_);
}

void PsCoordinator::announce() {
  const OpenRequest& opened = formation_.request();
  locate();
  control_.route(formation_.serving());
  rendezvous().update([&](GroupView& view) {
    formation_.announce(view);
    view.mutable_ps_addresses()->Assign(addresses_.begin(), addresses_.end());
  });
  if (formation_.next() == PsFormation::Next::announce)
    log::info("generation " + std::to_string(opened.generation()) + " opened from " +
                  origin_of(opened) + " at step " + std::to_string(formation_.step()) + ": " +
                  formation_.reason(),
              {{"generation", opened.generation()}, {"step", formation_.step()}});
  formation_.announced();
}

void PsCoordinator::watch() {
  listen_to_leaving();
  tell_copies();
}

void PsCoordinator::tell_copies() {
  if (setup_.copies < 2 || setup_.shards < 2) return;
  int replicated = 0;
  rendezvous().inspect(
      [&](const group::PeerRegistry& registry) { replicated = registry.replicated(); });
  const int before = std::exchange(replicated_, replicated);
  if (before == replicated) return;
  const std::string text = std::to_string(replicated) + " of " + std::to_string(setup_.shards) +
                           " shards have a second copy";
  if (replicated < before) {  // not while the group is forming
    log::warning(text);
  } else {
    log::info(text);
  }
}

void PsCoordinator::listen_to_leaving() {
  bool leaving = false;
  rendezvous().inspect(
      [&](const group::PeerRegistry& registry) { leaving = registry.shard_leaving(); });
  if (leaving && !asked_ && setup_.shard_leaving) setup_.shard_leaving();
  asked_ = leaving;
}

}  // namespace muster::ps
