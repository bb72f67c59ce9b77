#include <optional>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/program/time_ledger.h"
#include "common/system/file.h"
#include "trainer/checkpoint/start/completion.h"
#include "trainer/group/storage_patience.h"
#include "trainer/loop/roles/attend.h"
#include "trainer/loop/roles/claim_folder.h"
#include "trainer/loop/roles/group_report.h"
#include "trainer/loop/roles/roles.h"
#include "trainer/loop/roles/strategy.h"
#include "trainer/loop/training_loop.h"

namespace muster::loop {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kGoodbye{5000};
constexpr milliseconds kReturn{2000};  // time within which a live member reconnects

// Waits until connected members, and members that connect within `least`, have the last view,
// before this process ends.
void linger(LedGroup& group, milliseconds least = {}) {
  const Spending stopping(TimeUse::stopping);
  const auto begun = std::chrono::steady_clock::now();
  const auto lasted = [&] { return std::chrono::steady_clock::now() - begun; };
  const auto accompanied = [&] {
    int members = 0;
    group.server().inspect(
        [&](const group::PeerRegistry& registry) { members = registry.members_present(); });
    return members > 1;
  };
  while (lasted() < kGoodbye && (lasted() < least || accompanied()))
    group.server().wait_for_change(milliseconds(50));
}

void end_in_failure(LedGroup& group, const Invalid& error) {
  group.server().update([&](GroupView& view) {
    view.set_phase(GroupView::FAILED);
    view.set_exit_code(static_cast<uint32_t>(error.exit_code()));
    view.set_message(error.what());
  });
  linger(group, kReturn);
}

int leave(LedGroup& group) {
  group.withdraw();
  group.leader().save(group.synchronizer());
  group.server().update([](GroupView& view) { view.set_stopping(true); });
  return kTerminated;
}

// Trains to the end, with as many generations as needed. A full storage does not cause a new
// generation.
int lead(LedGroup& group, Assembly& assembly, const folder::Claim& claim) {
  const std::stop_token stop = claim.token();
  group::Backoff backoff;
  std::optional<checkpoint::Store::Found> final;
  for (;;) {
    const Ending ending = train(group.synchronizer(), assembly, group.leader().recorder(),
                                group.leader().checkpointer(), group.leader().validator(), stop,
                                group.leader().stop_rule());
    if (ending == Ending::interrupted) {
      claim.require_held();
      return leave(group);
    }
    if (!final && !group.synchronizer().compared()) {
      log::info("the end needs another generation, in which members compare their states");
      group.coordinator().renew();
      continue;
    }
    try {
      group::patiently(stop, [&] {
        group.coordinator().rethrow_failure();
        if (!final) final = group.leader().save_final(group.synchronizer());
        group.leader().conclude(final, final->manifest.position);
      });
    } catch (const WriteError&) {
      if (!stop.stop_requested()) throw;
      continue;
    } catch (const NameTaken& error) {
      log::info(std::string("the end needs another generation: ") + error.what());
      group.coordinator().renew();
      continue;
    } catch (const Unavailable& error) {
      log::warning(std::string("the end must wait: ") + error.what());
      std::this_thread::sleep_for(backoff.next());
      continue;
    }
    group.server().update([](GroupView& view) { view.set_phase(GroupView::FINISHED); });
    linger(group);
    return kSuccess;
  }
}

}  // namespace

int run_leader(const group::Membership& membership, Training training, std::stop_token stop) {
  const auto threads = ThreadChoice::from_environment(training.spec.threads);
  metrics::Reporter reporter(membership.http_address, membership.role_name, membership.index,
                             membership.restarts);
  const auto claim = claim_folder(membership, training, reporter, stop);
  if (!claim) return kTerminated;
  stop = claim->token();
  Assembly assembly = assemble_member(std::move(training), membership, threads);
  auto store = open_store(membership, assembly);
  // If all checkpoints are damaged, the state in the shards can be used; the coordinator refuses to
  // continue if they have none.
  const auto newest = store->newest();
  const checkpoint::Completion completion(assembly.training.json, membership.distributed());
  if (newest && completion.covers(newest->manifest)) {
    require_same_training(*newest, membership, assembly.training);
    log::info("training was finished before");
    Leader leader(membership, assembly, reporter, std::move(store), {}, stop);
    group::patiently(stop, [&] { return leader.conclude_again(*newest); });
    return kSuccess;
  }
  const auto group = make_group(membership, assembly, reporter, std::move(store), stop);
  group->leader().begin(newest);
  const GroupReport report(reporter, group->server(), group->leader().recorder());
  try {
    return lead(*group, assembly, *claim);
  } catch (const Invalid& error) {
    end_in_failure(*group, error);
    throw;
  }
}

}  // namespace muster::loop
