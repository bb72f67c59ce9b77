#include <utility>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/program/time_ledger.h"
#include "common/threads/cpu_budget.h"
#include "trainer/group/pollers.h"
#include "trainer/loop/roles/attend.h"
#include "trainer/loop/roles/roles.h"

namespace muster::loop {

int run_replica(const group::Membership& membership, std::stop_token stop) {
  const TimeLedger ledger;
  if (membership.training.empty())
    throw Invalid("MUSTER_TRAINING: expected the path of a training.yaml, found nothing",
                  kBadConfig);
  if (membership.role == group::Role::evaluator) {
    if (membership.storage.empty())
      throw Invalid("MUSTER_STORAGE: expected the job's folder on shared storage, found nothing",
                    kBadConfig);
    return run_evaluator(membership, stop);
  }
  if (!membership.distributed() && !membership.collective())
    return run_alone(membership, stop, nullptr);
  if (!membership.identity)
    log::warning("whoever reaches our port is believed: this job's replicas have no key pair");
  if (membership.role == group::Role::ps) {
    const group::Pollers pollers(cpu_budget() / 2);
    return run_ps(membership, stop);
  }
  Training training = Training::load(membership.training, membership.storage);
  keep_links_on_host(membership, training.spec);
  const group::Pollers pollers(cpu_budget() / 2);
  const auto run = membership.is_leader() ? run_leader : run_worker;
  return run(membership, std::move(training), stop);
}

}  // namespace muster::loop
