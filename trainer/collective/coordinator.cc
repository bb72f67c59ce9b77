#include "trainer/collective/coordinator.h"

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/log.h"
#include "trainer/group/position.h"

namespace muster::collective {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kGlance{200};
}

Coordinator::Coordinator(group::RendezvousServer& rendezvous, const checkpoint::Store& store,
                         Setup setup)
    : group::Coordinator(rendezvous, setup.storage, setup.job_uid),
      store_(store),
      setup_(std::move(setup)),
      formation_(setup_.group, std::chrono::steady_clock::now()) {
  start();
}

Coordinator::~Coordinator() {
  stop();
}

void Coordinator::abandon() {
  lease_.reset();
  formation_.abandon();
}

void Coordinator::advance() {
  using Next = Formation::Next;
  switch (formation_.next()) {
    case Next::claim:
      require_lead();
      rendezvous().update(group::suspend);
      return formation_.claimed(open_generation(formation_.above()));
    case Next::fence: {
      store_.fence();
      const auto names = store_.list();
      return formation_.fenced(names.empty() ? 0 : names.front().generation);
    }
    case Next::gather:
    case Next::assemble:
    case Next::watch:
      return wait();
    case Next::choose:
      return choose();
    case Next::announce:
      return announce();
    case Next::run:
      return run();
  }
}

void Coordinator::choose() {
  const auto newest = store_.to_resume();
  if (!newest) return formation_.chosen(std::nullopt);
  const std::string folder = newest->directory.filename();
  lease_ = store_.lease(*newest, "restore");
  if (!lease_) throw Unavailable(folder + " was pruned");
  formation_.chosen(
      Formation::Checkpoint{"checkpoints/" + folder, group::to_message(setup_.resume_at(*newest))});
}

void Coordinator::announce() {
  rendezvous().update([&](GroupView& view) { *view.mutable_collective() = formation_.plan(); });
  formation_.announced();
}

void Coordinator::run() {
  const CollectivePlan& plan = formation_.plan();
  rendezvous().update([&](GroupView& view) {
    if (view.phase() == GroupView::FINISHED || view.phase() == GroupView::FAILED) return;
    *view.mutable_collective() = plan;
    view.set_generation(plan.generation());
    view.set_phase(GroupView::RUNNING);
  });
  const std::string from = plan.content() == CollectivePlan::KEEP      ? formation_.reason()
                           : plan.content() == CollectivePlan::RESTORE ? plan.checkpoint()
                                                                       : "the beginning";
  log::info("generation " + std::to_string(plan.generation()) + " of " +
                std::to_string(plan.members_size()) + " members opened from " + from,
            {{"generation", plan.generation()},
             {"step", plan.position().step()},
             {"members", plan.members_size()},
             {"replicas", plan.replicas()},
             {"sharedMemory", plan.shared_memory()}});
  formation_.running();
}

// Until something changes that the formation looks at.
void Coordinator::wait() {
  const Formation::Next before = formation_.next();
  // Those who go home now are not lost.
  if (rendezvous().view().phase() == GroupView::FINISHED)
    return rendezvous().wait_for_change(kGlance);
  if (before == Formation::Next::watch && take_renewal()) return formation_.abandon();
  rendezvous().inspect([&](const group::Roster& roster) {
    formation_.look(roster, std::chrono::steady_clock::now());
  });
  if (formation_.next() != before) {
    if (before == Formation::Next::watch)
      log::info("a member came, came back or was lost: opening the next generation");
    return;
  }
  glance_at_lead();
  // A generation does not end with a member that is away, if the others can wait for it.
  const bool needs_all = before == Formation::Next::watch && setup_.group.least == 0;
  if (before == Formation::Next::gather || needs_all) remind();
  if (before == Formation::Next::watch) lease_.reset();
  rendezvous().wait_for_change(kGlance);
}

}  // namespace muster::collective
