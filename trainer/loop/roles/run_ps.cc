#include <algorithm>
#include <memory>

#include "common/documents/json.h"
#include "common/documents/json_file.h"
#include "common/environment.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "common/text/whole_number.h"
#include "trainer/compute/cuda/gpus.h"
#include "trainer/compute/device.h"
#include "trainer/group/address.h"
#include "trainer/group/leader_address_file.h"
#include "trainer/group/storage_patience.h"
#include "trainer/loop/gpu_report.h"
#include "trainer/loop/roles/attend.h"
#include "trainer/loop/roles/final_checkpoint.h"
#include "trainer/loop/roles/roles.h"
#include "trainer/metrics/names.h"
#include "trainer/metrics/reporter.h"
#include "trainer/ps/serving/server.h"
#include "trainer/ps/serving/standby_link.h"

namespace muster::loop {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kServingGlance{250};
constexpr milliseconds kAlone{5000};
constexpr milliseconds kForever = std::chrono::hours(24 * 3650);
constexpr int kDefaultGrace = 120;
constexpr seconds kReserve{5};

// Returns how long a ps may go on after SIGTERM: MUSTER_GRACE_SECONDS less a reserve.
seconds grace() {
  const std::string text =
      environment_variable("MUSTER_GRACE_SECONDS", std::to_string(kDefaultGrace));
  const auto number = whole_number<int>(text, 0);
  if (!number)
    throw Invalid("MUSTER_GRACE_SECONDS: expected seconds, found \"" + text + "\"", kBadConfig);
  return std::max(seconds(1), seconds(*number) - kReserve);
}

// Returns the GPU that keeps the shards; null if the CPU does. Throws Invalid if the GPU is
// missing, or does not support the kind of memory that shards need.
std::shared_ptr<compute::cuda::Gpu> open_gpu(const spec::TrainingSpec& spec) {
  if (spec.ps_device != "cuda") return nullptr;
  const compute::Device device = compute::choose_devices("cuda", 1, "psDevice").front();
  std::shared_ptr<compute::cuda::Gpu> gpu = compute::cuda::open_gpu(device.ordinal);
  try {
    gpu->release_shared(gpu->allocate_shared(sizeof(float)));
  } catch (const Unavailable& error) {
    throw Invalid(std::string("psDevice: ") + error.what(), kBadConfig);
  }
  log::info("shards are kept on " + gpu->name());
  return gpu;
}

// The shards on a ps: its own shard, and the shard whose second copy it may hold.
class Homes {
 public:
  Homes(const group::Membership& membership, const spec::TrainingSpec& spec,
        ps::HostIdentity identity) {
    const int shards = membership.shards();
    if (membership.replication > 1 && spec.backup_workers > 0)
      throw Invalid("MUSTER_REPLICATION: expected 1 with backup workers, found " +
                        std::to_string(membership.replication),
                    kBadConfig);
    const std::shared_ptr<compute::cuda::Gpu> gpu = open_gpu(spec);
    if (membership.replication > 1 && gpu)
      throw Invalid("MUSTER_REPLICATION: expected 1 with psDevice cuda, found " +
                        std::to_string(membership.replication),
                    kBadConfig);
    for (int i = 0; i < std::min(membership.replication, shards); ++i) {
      identity.shard = (membership.index - i + shards) % shards;
      hosts_.push_back(std::make_unique<ps::ShardHost>(spec, identity, gpu));
    }
  }
  std::vector<ps::ShardHost*> all() const {
    std::vector<ps::ShardHost*> all;
    for (const auto& host : hosts_) all.push_back(host.get());
    return all;
  }
  std::vector<ShardState> states() const {
    std::vector<ShardState> states;
    for (const auto& host : hosts_) states.push_back(host->state());
    return states;
  }
  ps::Shard::Counts counts() const {
    ps::Shard::Counts counts;
    for (const auto& host : hosts_) counts += host->counts();
    return counts;
  }
  void require_faultless() const {
    for (const auto& host : hosts_) host->require_faultless();
  }
  bool empty() const {
    return std::ranges::all_of(hosts_,
                               [](const auto& host) { return host->state().generation() == 0; });
  }

 private:
  std::vector<std::unique_ptr<ps::ShardHost>> hosts_;
};

// The links to the second copies of the shards served here.
class StandbyLinks {
 public:
  StandbyLinks(const Homes& homes, const group::Membership& membership) {
    if (membership.replication == 1) return;
    for (ps::ShardHost* host : homes.all())
      links_.push_back(std::make_unique<ps::StandbyLink>(*host, membership.identity));
  }
  void look(const GroupView& view) {
    for (const auto& link : links_) link->look(view);
  }

 private:
  std::vector<std::unique_ptr<ps::StandbyLink>> links_;
};

// Returns the part of the states on which rank 0's decisions depend: a change of it is reported at
// once.
std::string standing(const std::vector<ShardState>& states) {
  std::string text;
  for (const ShardState& state : states)
    for (const uint64_t part :
         {state.generation(), uint64_t{state.serving()}, uint64_t{state.whole()}, state.coupling(),
          uint64_t{state.standby_lost()}, uint64_t{state.differs()}})
      text += std::to_string(part) + " ";
  return text;
}

std::string places_in(const GroupView& view) {
  std::string text = std::to_string(view.generation());
  for (const ShardPlace& place : view.places())
    text += " " + std::to_string(place.ps()) + " " + std::to_string(place.standby_incarnation());
  return text;
}

void report(metrics::Reporter& reporter, const Homes& homes, ps::Shard::Counts& counted) {
  metrics::Progress progress;
  progress.state = homes.empty() ? "waiting" : "serving";
  int serving = 0;
  int replicated = 0;
  int second = 0;
  for (const ShardState& state : homes.states()) {
    progress.step = std::max(progress.step, state.step());
    progress.generation = std::max(progress.generation, state.generation());
    serving += state.serving();
    replicated += state.replicated();
    second += state.whole();
  }
  reporter.update(progress);
  reporter.gauge("shards_serving", serving);
  reporter.gauge("shards_replicated", replicated);
  reporter.gauge("second_copies", second);
  const ps::Shard::Counts now = homes.counts();
  // A shard that is opened anew counts from 0 again.
  const auto more = [](uint64_t before, uint64_t after) {
    return after > before ? static_cast<double>(after - before) : 0.0;
  };
  const auto count = [&](const char* name, uint64_t before, uint64_t after) {
    reporter.count(name, more(before, after));
  };
  count("commits", counted.commits, now.commits);
  count("pushes_duplicate", counted.duplicates, now.duplicates);
  count("pushes_conflicting", counted.conflicting, now.conflicting);
  count("pushes_stale", counted.stale, now.stale);
  count("pushes_superseded", counted.superseded, now.superseded);
  count("members_left_out", counted.left_out, now.left_out);
  count("members_held_back", counted.held_back, now.held_back);
  count("states_differing", counted.differing, now.differing);
  std::vector<double> pushes;
  for (size_t i = 0; i < now.by_staleness.size(); ++i)
    pushes.push_back(more(counted.by_staleness[i], now.by_staleness[i]));
  static_assert(std::tuple_size_v<decltype(now.by_staleness)> ==
                metrics::kStalenessBounds.size() + 1);
  reporter.observe("staleness", metrics::kStalenessBounds, pushes,
                   more(counted.staleness, now.staleness));
  counted = now;
}

// Whether a ps that was asked to stop may leave: its shards are needed until rank 0 has saved them.
bool may_leave(const group::RendezvousClient& client, const Homes& homes,
               uint64_t checkpoints_before) {
  const GroupView view = client.view();
  if (homes.empty() || view.stopping()) return true;
  if (view.phase() == GroupView::FINISHED || view.phase() == GroupView::FAILED) return true;
  if (view.checkpoints() > checkpoints_before) return true;
  return !client.connected() && client.silence() > kAlone;
}

// Whether the training was finished earlier: then rank 0 opens no rendezvous. In this case
// result.json names the job too, because rank 0 has written it.
bool was_finished(const group::Membership& membership, const Training& training) {
  look_anew(membership.storage);
  const Json result = read_json_or_null(membership.storage / "result.json");
  if (membership.uid.empty() || string_or(result, "jobUid", "") != membership.uid) return false;
  return FinalCheckpoint(membership, training).is_there();
}

}  // namespace

int run_ps(const group::Membership& membership, std::stop_token stop) {
  const Training training = Training::load(membership.training, membership.storage);
  const Hello hello = make_hello(membership, training);
  ps::HostIdentity identity;
  identity.job_uid = membership.uid;
  identity.version = group::version();
  identity.training_fingerprint = training.fingerprint;
  identity.storage = membership.storage;
  identity.shards = membership.shards();
  identity.incarnation = hello.incarnation();
  const seconds patience = grace();
  group::patiently(stop, [&] { group::require_writable(membership.storage); });
  metrics::Reporter reporter(membership.http_address, membership.role_name, membership.index,
                             membership.restarts);
  if (training.spec.ps_device == "cuda")
    report_gpus(reporter, compute::choose_devices("cuda", 1, "psDevice"));
  const Homes homes(membership, training.spec, identity);
  ps::Server server(membership.own_address(), membership.identity, homes.all());
  StandbyLinks standbys(homes, membership);
  group::RendezvousClient client(group::ways_to_rendezvous(membership),
                                 membership.rendezvous_address(), hello, [&](PeerMessage& message) {
                                   for (const ShardState& state : homes.states())
                                     *message.add_shards() = state;
                                   message.set_leaving(stop.stop_requested());
                                 });
  log::info("serving at " + membership.own_address());
  ps::Shard::Counts counted;
  std::string stands;
  std::string seen;
  while (!stop.stop_requested()) {
    const GroupView view =
        client.wait([&](const GroupView& newest) { return places_in(newest) != seen; }, stop,
                    kServingGlance, kForever);
    seen = places_in(view);
    standbys.look(view);
    if (std::string now = standing(homes.states()); std::exchange(stands, now) != now)
      client.report_now();
    report(reporter, homes, counted);
    homes.require_faultless();
  }
  // If the job has ended, nothing has gone wrong.
  if (client.view().phase() == GroupView::FINISHED || was_finished(membership, training))
    return kSuccess;
  const uint64_t checkpoints = client.view().checkpoints();
  const auto never = [](const GroupView&) { return false; };
  client.report_now();
  const auto until = Clock::now() + patience;
  while (Clock::now() < until && !may_leave(client, homes, checkpoints)) {
    client.wait(never, {}, milliseconds(50), kForever);
    report(reporter, homes, counted);
    homes.require_faultless();
  }
  return kTerminated;
}

}  // namespace muster::loop
