#include <charconv>
#include <cstdlib>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/log.h"
#include "trainer/group/address.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/storage_patience.h"
#include "trainer/loop/attend.h"
#include "trainer/loop/roles.h"
#include "trainer/metrics/progress.h"
#include "trainer/ps/server.h"

namespace muster::loop {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kGlance{250};
constexpr milliseconds kAlone{5000};
constexpr milliseconds kForever = std::chrono::hours(24 * 3650);
constexpr int kDefaultGrace = 120;
constexpr seconds kReserve{5};

// How long a ps may go on after SIGTERM: MUSTER_GRACE_SECONDS less a reserve.
seconds grace() {
  int number = kDefaultGrace;
  if (const char* text = std::getenv("MUSTER_GRACE_SECONDS"); text && *text) {
    const std::string_view value(text);
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0)
      throw Invalid("MUSTER_GRACE_SECONDS: expected seconds, found \"" + std::string(value) + "\"",
                    kBadConfig);
  }
  return std::max(seconds(1), seconds(number) - kReserve);
}

void report(metrics::Reporter& reporter, const ps::ShardHost& host, ps::Shard::Counts& counted) {
  const ShardState state = host.state();
  metrics::Progress progress;
  progress.state = state.generation() == 0 ? "waiting" : "serving";
  progress.step = state.step();
  progress.generation = state.generation();
  reporter.update(progress);
  const ps::Shard::Counts now = host.counts();
  const auto count = [&](const char* name, uint64_t& before, uint64_t after) {
    if (after > before) reporter.count(name, static_cast<double>(after - before));
    before = after;
  };
  count("commits", counted.commits, now.commits);
  count("pushes_duplicate", counted.duplicates, now.duplicates);
  count("pushes_stale", counted.stale, now.stale);
  count("pushes_superseded", counted.superseded, now.superseded);
  count("members_left_out", counted.left_out, now.left_out);
  count("members_held_back", counted.held_back, now.held_back);
  count("staleness", counted.staleness, now.staleness);
  if (now.pushes > 0) reporter.gauge("staleness_max", static_cast<double>(now.most_staleness));
}

// Asked to stop: what we hold is of use until rank 0 has saved it.
bool may_leave(const group::Attendance& attendance, const ps::ShardHost& host,
               uint64_t checkpoints_before) {
  const GroupView view = attendance.view();
  if (host.state().generation() == 0 || view.stopping()) return true;
  if (view.phase() == GroupView::FINISHED || view.phase() == GroupView::FAILED) return true;
  if (view.checkpoints() > checkpoints_before) return true;
  return !attendance.connected() && attendance.silence() > kAlone;
}

}  // namespace

int run_ps(const group::Membership& membership, std::stop_token stop) {
  const Training training = Training::load(membership.training);
  ps::HostIdentity identity;
  identity.job_uid = membership.uid;
  identity.version = group::version();
  identity.training_fingerprint = training.fingerprint;
  identity.storage = membership.storage;
  identity.shard = membership.index;
  identity.shards = membership.shards();
  const seconds patience = grace();
  group::patiently(stop, [&] { group::require_writable(membership.storage); });
  metrics::Reporter reporter(membership.http_address, membership.role_name, membership.index);
  ps::ShardHost host(training.spec, identity);
  ps::Server server(membership.own_address(), host);
  group::Attendance attendance(group::make_channel(membership.rendezvous_address()),
                               membership.rendezvous_address(),
                               make_hello(membership, training, ""), [&](PeerMessage& message) {
                                 *message.mutable_shard() = host.state();
                                 message.set_leaving(stop.stop_requested());
                               });
  log::info("serving at " + membership.own_address());
  ps::Shard::Counts counted;
  const auto never = [](const GroupView&) { return false; };
  while (!stop.stop_requested()) {
    attendance.wait(never, stop, kGlance, kForever);
    report(reporter, host, counted);
  }
  const uint64_t checkpoints = attendance.view().checkpoints();
  attendance.report_now();
  const auto until = Clock::now() + patience;
  while (Clock::now() < until && !may_leave(attendance, host, checkpoints)) {
    attendance.wait(never, {}, milliseconds(50), kForever);
    report(reporter, host, counted);
  }
  return kTerminated;
}

}  // namespace muster::loop
