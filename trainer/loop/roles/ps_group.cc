#include <algorithm>
#include <map>

#include "trainer/group/address.h"
#include "trainer/loop/roles/led_group.h"
#include "trainer/loop/synchronizers/ps_synchronizer.h"
#include "trainer/loop/synchronizers/step_times.h"
#include "trainer/ps/group/ps_coordinator.h"
#include "trainer/ps/transport/wire.h"

namespace muster::loop {

namespace {

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

// The members are declared in the order in which they must be made.
class PsGroup : public LedGroup {
 public:
  PsGroup(const group::Membership& membership, Assembly& assembly, metrics::Reporter& reporter,
          std::unique_ptr<checkpoint::Store> store, std::stop_token stop)
      : LedGroup(membership, assembly),
        control_(membership.cluster.ps, membership.identity, membership.uid),
        leader_(
            membership, assembly, reporter, std::move(store),
            [this](uint64_t) { count_checkpoint(); }, stop),
        coordinator_(server(), control_, *leader_.store(), setup(membership, assembly)),
        client_(server().local_channel(), "ourselves", make_hello(membership, assembly),
                [this](PeerMessage& message) { report_.fill(message); }),
        synchronizer_(assembly, client_, synchronizer_setup(membership, assembly)) {
    leader_.recorder().also_report(
        [this, &reporter, &spec = assembly.spec(), replicated = membership.replication > 1] {
          report_traffic(reporter, ps::width_of(spec.wire));
          auto metrics = of_synchronization(spec);
          metrics.merge(straggler());
          if (replicated) metrics["shardsReplicated"] = shards_replicated();
          return metrics;
        });
  }

  Leader& leader() override { return leader_; }
  group::Coordinator& coordinator() override { return coordinator_; }
  Synchronizer& synchronizer() override { return synchronizer_; }

 private:
  double shards_replicated() {
    int count = 0;
    server().inspect([&](const group::PeerRegistry& registry) { count = registry.replicated(); });
    return count;
  }

  // Returns what shard 0 last reported of the distance between members.
  std::map<std::string, double> of_synchronization(const spec::TrainingSpec& spec) {
    ShardState state;
    server().inspect([&](const group::PeerRegistry& registry) {
      if (const ShardState* const shard = registry.serving(0)) state = *shard;
    });
    if (spec.policy == spec::SyncPolicy::sync && spec.backup_workers == 0) return {};
    if (spec.policy == spec::SyncPolicy::sync)
      return {{"leftOut", static_cast<double>(state.left_out())}};
    const auto pushes = static_cast<double>(std::max<uint64_t>(1, state.pushes()));
    return {{"staleness", static_cast<double>(state.staleness()) / pushes}};
  }

  // Returns the slowest member, by the times that the members report.
  std::map<std::string, double> straggler() {
    std::vector<int> ranks;
    std::vector<collective::ComputingTime> times;
    server().inspect([&](const group::PeerRegistry& registry) {
      for (const auto& [rank, peer] : registry.members()) {
        if (!(peer->computing_seconds > 0)) continue;
        ranks.push_back(rank);
        times.push_back({peer->computing_seconds, peer->input_seconds});
      }
    });
    return straggler_of(ranks, times);
  }

  // Counts what was exchanged with each ps since the call before.
  void report_traffic(metrics::Reporter& reporter, size_t width) {
    const std::vector<ps::Exchange::Traffic>& now = synchronizer_.traffic();
    counted_.resize(std::max(counted_.size(), now.size()));
    for (size_t ps = 0; ps < now.size(); ++ps) {
      const auto& before = counted_[ps];
      const std::map<std::string, std::string> labels = {{"ps", std::to_string(ps)}};
      reporter.count("ps_bytes", static_cast<double>(width * (now[ps].floats - before.floats)),
                     labels);
      reporter.count("ps_answers", static_cast<double>(now[ps].answers - before.answers), labels);
      reporter.count("ps_seconds", now[ps].seconds - before.seconds, labels);
    }
    counted_ = now;
  }

  ps::PsCoordinator::Setup setup(const group::Membership& membership, const Assembly& assembly) {
    auto setup = led(ps::PsCoordinator::Setup(), membership, leader_);
    setup.shards = membership.shards();
    setup.addresses = membership.cluster.ps;
    setup.copies = membership.replication;
    setup.sync = assembly.spec().policy == spec::SyncPolicy::sync;
    setup.request = common_opening(membership, assembly);
    setup.shard_leaving = [this] { leader_.checkpointer()->request(); };
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
    setup.control = &control_;
    setup.report = &report_;
    setup.rethrow_failure = [this] { coordinator_.rethrow_failure(); };
    return setup;
  }

  ps::Control control_;
  Leader leader_;
  ps::PsCoordinator coordinator_;
  MemberReport report_;
  group::RendezvousClient client_;
  PsSynchronizer synchronizer_;
  std::vector<ps::Exchange::Traffic> counted_;
};

}  // namespace

std::unique_ptr<LedGroup> make_ps_group(const group::Membership& membership, Assembly& assembly,
                                        metrics::Reporter& reporter,
                                        std::unique_ptr<checkpoint::Store> store,
                                        std::stop_token stop) {
  return std::make_unique<PsGroup>(membership, assembly, reporter, std::move(store), stop);
}

}  // namespace muster::loop
