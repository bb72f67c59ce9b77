#include "trainer/loop/roles/group_report.h"

#include <algorithm>
#include <array>

#include "common/documents/json.h"
#include "trainer/metrics/progress.h"

namespace muster::loop {

namespace {

double lasted_seconds(Recorder::Clock::duration duration) {
  return std::max(0.0, std::chrono::duration<double>(duration).count());
}

constexpr size_t kMostStalls = 64;  // the limit in the job's status

std::string name_of(const Hello& hello) {
  return hello.role() + "-" + std::to_string(hello.index());
}

}  // namespace

GroupReport::GroupReport(metrics::Reporter& reporter, group::RendezvousServer& server,
                         Recorder& recorder)
    : reporter_(reporter), server_(server), recorder_(recorder) {
  recorder_.on_progress([this](Recorder::Clock::time_point now) { note_progress(now); });
  reporter_.also_say("group", [this] { return describe(); });
}

GroupReport::~GroupReport() {
  reporter_.also_say("group", {});
  recorder_.on_progress({});
}

Json GroupReport::describe() const {
  Json report = {{"missing", Json::array()}, {"restartsInPlace", Json::array()}};
  Json stalled = Json::array();
  server_.inspect([&](const group::PeerRegistry& registry) {
    for (std::string& name : registry.missing_replicas())
      report["missing"].push_back(std::move(name));
    for (const group::PeerRegistry::Peer* peer : registry.peers()) {
      for (const StallMessage& stall : peer->stalls) {
        if (stalled.size() == kMostStalls) return;
        const auto since = static_cast<double>(stall.since());
        stalled.push_back(
            metrics::stalled_json(name_of(peer->hello), stall.doing(), since, stall.storage()));
      }
    }
  });
  if (!stalled.empty()) report["stalled"] = std::move(stalled);
  const MutexLock lock(mutex_);
  for (const auto& [name, restart] : restarts_) report["restartsInPlace"].push_back(restart);
  return report;
}

void GroupReport::note_progress(Recorder::Clock::time_point now) {
  std::map<std::string, Json> returned;
  server_.inspect([&](const group::PeerRegistry& registry) {
    for (const group::PeerRegistry::Peer* peer : registry.peers()) {
      const Hello& hello = peer->hello;
      if (hello.restarts() == 0) continue;
      const std::string name = name_of(hello);
      returned[name] = {{"replica", name},
                        {"attempt", hello.attempt()},
                        {"restarts", hello.restarts()},
                        {"exitCode", hello.last_exit_code()},
                        {"seconds", lasted_seconds(now - peer->lost)}};
    }
  });
  const auto same = [](const Json& one, const Json& other) {
    return std::ranges::all_of(std::array{"attempt", "restarts"}, [&](const char* field) {
      return member(one, field) == member(other, field);
    });
  };
  const MutexLock lock(mutex_);
  for (auto& [name, restart] : returned) {
    Json& known = restarts_[name];
    if (!same(known, restart)) known = std::move(restart);
  }
}

}  // namespace muster::loop
