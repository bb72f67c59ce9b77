#include "operator/kube/api/lease.h"

#include <time.h>

#include "common/documents/json.h"
#include "common/program/log.h"
#include "common/threads/pause.h"
#include "operator/api/status.h"

namespace muster::kube {

namespace {

using std::chrono::milliseconds;

// metav1.MicroTime: six digits of a fraction, no more and no fewer.
std::string micro_time(Time time) {
  std::string text = api::format_time(time);
  return text.insert(text.size() - 1, "000");
}

}  // namespace

BootTime boot_time() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

LeaseAction decide(const SeenLease& seen, const std::string& identity, BootTime now) {
  if (!seen.record) return LeaseAction::create;
  if (seen.record->holder == identity) return LeaseAction::renew;
  if (seen.record->holder.empty()) return LeaseAction::take;
  return now - seen.since >= seen.record->duration ? LeaseAction::take : LeaseAction::wait;
}

LeaseRecord next_record(const SeenLease& seen, LeaseAction action, const LeaseSettings& settings,
                        Time now) {
  LeaseRecord record = seen.record.value_or(LeaseRecord());
  if (action == LeaseAction::take) ++record.transitions;
  if (action != LeaseAction::renew) record.acquired = now;
  record.renewed = now;
  record.holder = settings.identity;
  record.duration = std::chrono::ceil<std::chrono::seconds>(settings.duration);
  return record;
}

Json to_json(const LeaseRecord& record, const LeaseSettings& settings) {
  Json object = {{"apiVersion", leases().api_version()},
                 {"kind", leases().kind},
                 {"metadata", {{"name", settings.name}, {"namespace", settings.name_space}}},
                 {"spec",
                  {{"holderIdentity", record.holder},
                   {"leaseDurationSeconds", record.duration.count()},
                   {"acquireTime", micro_time(record.acquired)},
                   {"renewTime", micro_time(record.renewed)},
                   {"leaseTransitions", record.transitions}}}};
  if (!record.resource_version.empty()) {
    object["metadata"]["resourceVersion"] = record.resource_version;
  }
  return object;
}

LeaseRecord to_lease_record(const Json& object) {
  const Json& spec = member(object, "spec");
  LeaseRecord record;
  record.holder = string_or(spec, "holderIdentity", "");
  record.duration = std::chrono::seconds(integer_or(spec, "leaseDurationSeconds", 15));
  record.acquired = api::parse_time(string_or(spec, "acquireTime", "")).value_or(Time{});
  record.renewed = api::parse_time(string_or(spec, "renewTime", "")).value_or(Time{});
  record.transitions = static_cast<int>(integer_or(spec, "leaseTransitions", 0));
  record.resource_version = string_or(member(object, "metadata"), "resourceVersion", "");
  return record;
}

LeaderElection::LeaderElection(Transport& transport, LeaseSettings settings, OnChange on_change)
    : LeaderElection(transport, std::move(settings), std::move(on_change), boot_time, pause_for) {}

// A slow call must leave time for another call before the lease is lost.
LeaderElection::LeaderElection(Transport& transport, LeaseSettings settings, OnChange on_change,
                               Clock clock, Wait wait)
    : client_(transport, Client::Settings{settings.renew_within / 2}),
      settings_(std::move(settings)),
      on_change_(std::move(on_change)),
      clock_(std::move(clock)),
      wait_(std::move(wait)) {}

void LeaderElection::run(const std::stop_token& stop) {
  do {
    step();
    tell();
  } while (wait_(settings_.every, stop));
  give_up();
  tell();
}

void LeaderElection::step() {
  try {
    if (!fresh_) read();
    const LeaseAction action = decide(seen_, settings_.identity, clock_());
    if (action != LeaseAction::wait) write(action);
    return;
  } catch (const ApiUnavailable& error) {
    // Another process was faster; the next look will show it.
    if (error.status().code != 409) log::warning(std::string("leader election: ") + error.what());
  } catch (const Invalid& error) {
    log::error(std::string("leader election: ") + error.what());
  }
  fresh_ = false;
}

void LeaderElection::read() {
  const std::optional<Json> object = client_.get(leases(), {settings_.name_space, settings_.name});
  see(object ? std::optional(to_lease_record(*object)) : std::nullopt);
}

void LeaderElection::see(std::optional<LeaseRecord> record) {
  if (record != seen_.record) seen_.since = clock_();
  seen_.record = std::move(record);
  const MutexLock lock(mutex_);
  leader_ = seen_.record ? seen_.record->holder : "";
}

void LeaderElection::write(LeaseAction action) {
  const BootTime began = clock_();
  const Json body = to_json(next_record(seen_, action, settings_, api::wall_time()), settings_);
  const Answer written = action == LeaseAction::create ? client_.create(leases(), body)
                                                       : client_.update(leases(), body);
  if (action == LeaseAction::take) {
    const MutexLock lock(mutex_);
    taken_ = seen_.record;
  }
  see(to_lease_record(written.json()));
  fresh_ = true;
  leads_until_ = (began + std::chrono::duration_cast<BootTime>(settings_.renew_within)).count();
}

void LeaderElection::tell() {
  const bool now = leads();
  if (now == told_) return;
  told_ = now;
  on_change_(now);
}

void LeaderElection::give_up() {
  const bool led = leads();
  leads_until_ = 0;
  if (!led) return;
  LeaseRecord record = next_record(seen_, LeaseAction::renew, settings_, api::wall_time());
  record.holder.clear();
  record.duration = std::chrono::seconds(1);
  try {
    client_.update(leases(), to_json(record, settings_));
  } catch (const Unavailable& error) {
    log::warning(std::string("leader election: the lease is not given up: ") + error.what());
  } catch (const Invalid& error) {
    log::error(std::string("leader election: the lease is not given up: ") + error.what());
  }
}

std::string LeaderElection::leader() const {
  const MutexLock lock(mutex_);
  return leader_;
}

std::optional<LeaseRecord> LeaderElection::taken() const {
  const MutexLock lock(mutex_);
  return taken_;
}

}  // namespace muster::kube
