#include "common/exit_code.h"
#include "common/log.h"
#include "trainer/group/generations.h"
#include "trainer/group/storage_patience.h"
#include "trainer/loop/leader.h"
#include "trainer/loop/local_synchronizer.h"
#include "trainer/loop/roles.h"
#include "trainer/loop/training_loop.h"

namespace muster::loop {

namespace {

struct Ended {
  std::optional<checkpoint::Store::Found> final;
  checkpoint::Position position;
};

// Nothing if asked to stop.
std::optional<Ended> train_alone(const group::Membership& membership, Assembly& assembly,
                                 Leader& leader,
                                 const std::optional<checkpoint::Store::Found>& from,
                                 std::stop_token stop) {
  uint64_t generation = 1;
  if (!membership.storage.empty())
    generation = group::patiently(stop, [&] {
      return group::open_generation(membership.storage, from ? from->manifest.generation : 0,
                                    {membership.uid, membership.job});
    });
  if (from) {
    leader.recorder().restore(from->manifest.metrics);
    log::info("going on from " + from->directory.filename().string());
  }
  LocalSynchronizer synchronizer(assembly, from ? &*from : nullptr, generation);
  const Ending ending = train(synchronizer, assembly, leader.recorder(), leader.checkpointer(),
                              leader.validator(), stop);
  if (ending == Ending::interrupted) {
    leader.save(synchronizer);
    return std::nullopt;
  }
  return Ended{group::patiently(stop, [&] { return leader.save_final(synchronizer); }),
               synchronizer.position()};
}

}  // namespace

int run_alone(const group::Membership& membership, std::stop_token stop, Json* result) {
  Training training = Training::load(membership.training);
  const auto threads = ThreadChoice::from_environment(training.spec.threads);
  Assembly assembly = assemble(std::move(training), 1, false, threads);
  metrics::Reporter reporter(membership.http_address, membership.role_name, membership.index,
                             membership.restarts);
  if (membership.storage.empty())
    log::warning(
        "no storage folder (--storage): nothing of this training will be kept, "
        "no checkpoint and no model");
  Leader leader(membership, assembly, reporter, open_store(membership, assembly), {}, stop);
  auto from = leader.store() ? leader.store()->to_resume() : std::nullopt;
  if (from) from->manifest.position = leader.resume_at(*from);
  Json said;
  if (is_finished(from, *assembly.workload)) {
    log::info("training was finished before");
    said = group::patiently(stop, [&] { return leader.conclude_again(*from); });
  } else {
    const auto ended = train_alone(membership, assembly, leader, from, stop);
    if (!ended) return kTerminated;
    said = group::patiently(stop, [&] { return leader.conclude(ended->final, ended->position); });
  }
  if (result) *result = said;
  return kSuccess;
}

}  // namespace muster::loop
