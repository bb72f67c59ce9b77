#include <algorithm>
#include <map>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "trainer/group/address.h"
#include "trainer/group/signpost.h"
#include "trainer/group/storage_patience.h"
#include "trainer/loop/attend.h"
#include "trainer/loop/leader.h"
#include "trainer/loop/ps_synchronizer.h"
#include "trainer/loop/roles.h"
#include "trainer/loop/training_loop.h"
#include "trainer/ps/coordinator.h"

namespace muster::loop {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kGoodbye{5000};
constexpr milliseconds kReturn{2000};  // in which a member that lives has attended again

group::Roster::Expected expected_peers(const group::Membership& membership,
                                       const Assembly& assembly) {
  group::Roster::Expected expected;
  expected.job_uid = membership.uid;
  expected.version = group::version();
  expected.training_fingerprint = assembly.training.fingerprint;
  expected.training = assembly.training.json.dump();
  expected.layout_fingerprint = assembly.engine->layout().fingerprint();
  expected.chiefs = static_cast<int>(membership.cluster.chief.size());
  expected.workers = static_cast<int>(membership.cluster.workers.size());
  expected.shards = membership.shards();
  return expected;
}

OpenRequest common_opening(const group::Membership& membership, const Assembly& assembly) {
  const auto& model = assembly.spec().model;
  OpenRequest request;
  request.set_job_uid(membership.uid);
  request.set_version(group::version());
  request.set_training_fingerprint(assembly.training.fingerprint);
  request.set_layout_fingerprint(assembly.engine->layout().fingerprint());
  for (const int64_t size : model.input_shape) request.add_input_shape(size);
  request.set_label_count(model.label_count);
  request.set_members(static_cast<uint32_t>(membership.members()));
  request.set_tickets_per_epoch(assembly.workload->tickets_per_epoch());
  request.set_total_tickets(assembly.workload->total_tickets());
  return request;
}

// Everything rank 0 has, in the order in which it must be made and unmade.
struct Group {
  Group(const group::Membership& membership, Assembly& assembly, metrics::Reporter& reporter,
        std::unique_ptr<checkpoint::Store> store, std::stop_token stop)
      : server(membership.rendezvous_address(), expected_peers(membership, assembly)),
        signpost(membership),
        control(membership.cluster.ps, membership.uid),
        leader(
            membership, assembly, reporter, std::move(store),
            [this](uint64_t) { count_checkpoint(); }, stop),
        coordinator(server, control, *leader.store(), setup(membership, assembly)),
        attendance(
            server.local_channel(), "ourselves",
            make_hello(membership, assembly.training, assembly.engine->layout().fingerprint()), {}),
        synchronizer(assembly, attendance, synchronizer_setup(membership, assembly)) {
    const spec::TrainingSpec& spec = assembly.spec();
    if (spec.policy != spec::SyncPolicy::sync || spec.backup_workers > 0 ||
        membership.replication > 1)
      leader.recorder().also_report([this, &spec, replicated = membership.replication > 1] {
        auto metrics = of_synchronization(spec);
        if (replicated) metrics["shardsReplicated"] = shards_replicated();
        return metrics;
      });
  }

  double shards_replicated() {
    int count = 0;
    server.inspect([&](const group::Roster& roster) { count = roster.replicated(); });
    return count;
  }

  // What shard 0 said last of how far from each other members have been.
  std::map<std::string, double> of_synchronization(const spec::TrainingSpec& spec) {
    ShardState state;
    server.inspect([&](const group::Roster& roster) {
      if (const ShardState* const shard = roster.serving(0)) state = *shard;
    });
    if (spec.policy == spec::SyncPolicy::sync && spec.backup_workers == 0) return {};
    if (spec.policy == spec::SyncPolicy::sync)
      return {{"leftOut", static_cast<double>(state.left_out())}};
    const auto pushes = static_cast<double>(std::max<uint64_t>(1, state.pushes()));
    return {{"staleness", static_cast<double>(state.staleness()) / pushes}};
  }

  void count_checkpoint() {
    server.update([](GroupView& view) { view.set_checkpoints(view.checkpoints() + 1); });
  }

  ps::Coordinator::Setup setup(const group::Membership& membership, const Assembly& assembly) {
    ps::Coordinator::Setup setup;
    setup.storage = membership.storage;
    setup.owner = {membership.uid, membership.job};
    setup.shards = membership.shards();
    setup.addresses = membership.cluster.ps;
    setup.copies = membership.replication;
    setup.sync = assembly.spec().policy == spec::SyncPolicy::sync;
    setup.request = common_opening(membership, assembly);
    setup.resume_at = [this](const checkpoint::Store::Found& found) {
      return leader.resume_at(found);
    };
    setup.shard_leaving = [this] { leader.checkpointer()->request(); };
    return setup;
  }

  PsSynchronizer::Setup synchronizer_setup(const group::Membership& membership,
                                           const Assembly& assembly) {
    PsSynchronizer::Setup setup;
    setup.rank = 0;
    setup.members = membership.members();
    setup.shards = membership.shards();
    setup.connect =
        make_connect(membership, assembly.engine->layout().fingerprint(), assembly.spec().wire);
    setup.control = &control;
    setup.rethrow_failure = [this] { coordinator.rethrow_failure(); };
    return setup;
  }

  // So that those who attend, and those who come within `least`, hear the last word before we are
  // gone.
  void linger(milliseconds least = {}) {
    const auto begun = std::chrono::steady_clock::now();
    const auto lasted = [&] { return std::chrono::steady_clock::now() - begun; };
    const auto accompanied = [&] {
      int members = 0;
      server.inspect([&](const group::Roster& roster) { members = roster.members_present(); });
      return members > 1;
    };
    while (lasted() < kGoodbye && (lasted() < least || accompanied()))
      server.wait_for_change(milliseconds(50));
  }

  group::RendezvousServer server;
  group::Signpost signpost;
  ps::Control control;
  Leader leader;
  ps::Coordinator coordinator;
  group::Attendance attendance;
  PsSynchronizer synchronizer;
};

void end_in_failure(Group& group, const Invalid& error) {
  group.server.update([&](GroupView& view) {
    view.set_phase(GroupView::FAILED);
    view.set_exit_code(static_cast<uint32_t>(error.exit_code()));
    view.set_message(error.what());
  });
  group.linger(kReturn);
}

int leave(Group& group) {
  group.leader.save(group.synchronizer);
  group.server.update([](GroupView& view) { view.set_stopping(true); });
  return kTerminated;
}

// Trains to the end, through as many generations as it takes.
int lead(Group& group, Assembly& assembly, std::stop_token stop) {
  group::StoragePatience patience;
  group::Backoff backoff;
  for (;;) {
    const Ending ending = train(group.synchronizer, *assembly.workload, *assembly.feed,
                                group.leader.recorder(), group.leader.checkpointer(), stop);
    if (ending == Ending::interrupted) return leave(group);
    try {
      const auto final = group.leader.save_final(group.synchronizer);
      group.leader.conclude(final, final->manifest.position);
    } catch (const WriteError& error) {
      if (!patience.wait(error, stop) && !stop.stop_requested()) throw;
      continue;
    } catch (const NameTaken& error) {
      log::info(std::string("the end needs another generation: ") + error.what());
      group.coordinator.renew();
      continue;
    } catch (const Unavailable& error) {
      log::warning(std::string("the end must wait: ") + error.what());
      std::this_thread::sleep_for(backoff.next());
      continue;
    }
    patience.rest();
    group.server.update([](GroupView& view) { view.set_phase(GroupView::FINISHED); });
    group.linger();
    return kSuccess;
  }
}

}  // namespace

int run_leader(const group::Membership& membership, std::stop_token stop) {
  Training training = Training::load(membership.training);
  const auto threads = ThreadChoice::from_environment(training.spec.threads);
  Assembly assembly = assemble(std::move(training), membership.members(), true, threads);
  metrics::Reporter reporter(membership.http_address, membership.role_name, membership.index,
                             membership.restarts);
  auto store = open_store(membership, assembly);
  // Where all are damaged, what the shards hold is as good: the coordinator refuses if they do not.
  const auto newest = store->newest();
  if (is_finished(newest, *assembly.workload)) {
    log::info("training was finished before");
    Leader leader(membership, assembly, reporter, std::move(store), {}, stop);
    group::patiently(stop, [&] { return leader.conclude_again(*newest); });
    return kSuccess;
  }
  Group group(membership, assembly, reporter, std::move(store), stop);
  if (newest) group.leader.recorder().restore(newest->manifest.metrics);
  try {
    return lead(group, assembly, stop);
  } catch (const Invalid& error) {
    end_in_failure(group, error);
    throw;
  }
}

}  // namespace muster::loop
