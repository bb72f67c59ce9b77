#include "common/exit_code.h"
#include "common/program/log.h"
#include "trainer/checkpoint/start/completion.h"
#include "trainer/folder/generations.h"
#include "trainer/group/storage_patience.h"
#include "trainer/loop/roles/attend.h"
#include "trainer/loop/roles/claim_folder.h"
#include "trainer/loop/roles/leader.h"
#include "trainer/loop/roles/roles.h"
#include "trainer/loop/synchronizers/local_synchronizer.h"
#include "trainer/loop/training_loop.h"

namespace muster::loop {

namespace {

struct Ended {
  std::optional<checkpoint::Store::Found> final;
  checkpoint::Position position;
};

// Gives an engine the weights to evaluate, where there is no checkpoint to load them from.
void give_weights(LocalSynchronizer& synchronizer, compute::Engine& engine) {
  compute::Floats weights(engine.layout().size());
  synchronizer.read_weights(weights);
  engine.use_own();
  engine.parameters().write({0, weights.size()}, weights).wait();
}

// Returns nothing if asked to stop.
std::optional<Ended> train_alone(const group::Membership& membership, Assembly& assembly,
                                 Leader& leader,
                                 const std::optional<checkpoint::Store::Found>& from,
                                 const folder::Claim* claim, std::stop_token stop) {
  uint64_t generation = 1;
  if (!membership.storage.empty())
    generation = group::patiently(stop, [&] {
      return folder::open_generation(membership.storage, from ? from->manifest.generation : 0);
    });
  leader.begin(from);
  if (from) log::info("going on from " + from->directory.filename().string());
  LocalSynchronizer synchronizer(assembly, from ? &*from : nullptr, generation);
  const Ending ending = train(synchronizer, assembly, leader.recorder(), leader.checkpointer(),
                              leader.validator(), stop, leader.stop_rule());
  if (ending == Ending::interrupted) {
    if (claim) claim->require_held();
    leader.save(synchronizer);
    return std::nullopt;
  }
  Ended ended{group::patiently(stop, [&] { return leader.save_final(synchronizer); }),
              synchronizer.position()};
  if (!ended.final) give_weights(synchronizer, *assembly.engine);
  return ended;
}

}  // namespace

int run_alone(const group::Membership& membership, std::stop_token stop, Json* result) {
  Training training = Training::load(membership.training, membership.storage);
  keep_links_on_host(membership, training.spec);
  const auto threads = ThreadChoice::from_environment(training.spec.threads);
  metrics::Reporter reporter(membership.http_address, membership.role_name, membership.index,
                             membership.restarts);
  std::unique_ptr<folder::Claim> claim;
  if (membership.storage.empty()) {
    log::warning(
        "no storage folder (--storage): nothing of this training will be kept, "
        "no checkpoint and no model");
  } else {
    claim = claim_folder(membership, training, reporter, stop);
    if (!claim) return kTerminated;
    stop = claim->token();
  }
  Assembly assembly = assemble(std::move(training), 1, false, threads);
  Leader leader(membership, assembly, reporter, open_store(membership, assembly), {}, stop);
  auto from = leader.store() ? leader.store()->to_resume() : std::nullopt;
  const bool finished =
      from && checkpoint::Completion(assembly.training.json, false).covers(from->manifest);
  if (from) from->manifest.position = leader.resume_at(*from);
  Json said;
  if (finished) {
    require_same_training(*from, membership, assembly.training);
    log::info("training was finished before");
    said = group::patiently(stop, [&] { return leader.conclude_again(*from); });
  } else {
    const auto ended = train_alone(membership, assembly, leader, from, claim.get(), stop);
    if (!ended) return kTerminated;
    said = group::patiently(stop, [&] { return leader.conclude(ended->final, ended->position); });
  }
  if (result) *result = said;
  return kSuccess;
}

}  // namespace muster::loop
