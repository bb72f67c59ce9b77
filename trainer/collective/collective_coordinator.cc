#include "trainer/collective/collective_coordinator.h"

#include "common/program/log.h"

namespace muster::collective {

CollectiveCoordinator::CollectiveCoordinator(group::RendezvousServer& rendezvous,
                                             const checkpoint::Store& store, const Setup& setup)
    : group::Coordinator(rendezvous, store, setup),
      elastic_(setup.group.least > 0),
      formation_(setup.group, std::chrono::steady_clock::now()) {
  start();
}

CollectiveCoordinator::~CollectiveCoordinator() {
  stop();
}

void CollectiveCoordinator::look(const group::PeerRegistry& registry) {
  formation_.look(registry, std::chrono::steady_clock::now());
}

void CollectiveCoordinator::act() {
  if (formation_.next() == CollectiveFormation::Next::fence) {
    const auto names = store().list();
    return formation_.fenced(names.empty() ? 0 : names.front().generation);
  }
  rendezvous().update([&](GroupView& view) { formation_.announce(view); });
  if (formation_.next() == CollectiveFormation::Next::run) return run();
  formation_.announced();
}

void CollectiveCoordinator::run() {
  const CollectivePlan& plan = formation_.plan();
  const std::string from = plan.content() == CollectivePlan::KEEP      ? formation_.reason()
                           : plan.content() == CollectivePlan::RESTORE ? plan.checkpoint()
                                                                       : "the beginning";
  log::info("generation " + std::to_string(plan.generation()) + " of " +
                std::to_string(plan.members_size()) + " members opened from " + from + " at step " +
                std::to_string(plan.position().step()),
            {{"generation", plan.generation()},
             {"step", plan.position().step()},
             {"members", plan.members_size()},
             {"replicas", plan.replicas()},
             {"sharedMemory", plan.shared_memory()},
             {"linkedGpus", plan.linked_gpus()}});
  const std::string& why = formation_.why_unlinked();
  if (why != why_unlinked_ && !why.empty())
    log::info("GPUs exchange gradients through the host's memory: " + why);
  why_unlinked_ = why;
  formation_.running();
}

}  // namespace muster::collective
