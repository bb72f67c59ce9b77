#include "common/exit_code.h"
#include "common/log.h"
#include "trainer/group/generations.h"
#include "trainer/loop/leader.h"
#include "trainer/loop/local_synchronizer.h"
#include "trainer/loop/roles.h"
#include "trainer/loop/training_loop.h"

namespace muster::loop {

int run_alone(const group::Membership& membership, std::stop_token stop, Json* result) {
  Training training = Training::load(membership.training);
  const auto threads = ThreadChoice::from_environment(training.spec.threads);
  Assembly assembly = assemble(std::move(training), 1, false, threads);
  metrics::Reporter reporter(membership.http_address, membership.role_name, membership.index);
  Leader leader(membership, assembly, reporter, {});
  auto from = leader.newest();
  uint64_t generation = 1;
  if (from) {
    from->manifest.position = leader.resume_at(*from);
    leader.recorder().restore(from->manifest.metrics);
    log::info("going on from " + from->directory.filename().string());
  }
  const bool done = find_finished(membership.storage, *assembly.workload).has_value();
  if (!membership.storage.empty() && !done)
    generation = group::open_generation(membership.storage, from ? from->manifest.generation : 0);
  LocalSynchronizer synchronizer(assembly, from ? &*from : nullptr, generation);
  std::optional<checkpoint::Store::Found> final = from;
  if (!done) {
    const Ending ending = train(synchronizer, *assembly.workload, *assembly.feed, leader.recorder(),
                                leader.checkpointer(), stop);
    if (ending == Ending::interrupted) {
      leader.save(synchronizer);
      return kTerminated;
    }
    final = leader.save_final(synchronizer);
  }
  const auto& position = synchronizer.position();
  const Json said = leader.conclude(final, position.step, position.epoch);
  if (result) *result = said;
  return kSuccess;
}

}  // namespace muster::loop
