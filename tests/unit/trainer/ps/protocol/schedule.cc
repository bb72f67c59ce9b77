#include "tests/unit/trainer/ps/protocol/schedule.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace muster::ps::protocol {

namespace {
constexpr std::string_view kTwice = "-twice";
}

std::string policy_of(const Setting& setting) {
  std::string policy = setting.sync ? "sync" : setting.bounded ? "bounded" : "async";
  if (setting.backups > 0) policy = "backup" + std::to_string(setting.backups);
  if (setting.staleness > 0) policy += std::to_string(setting.staleness);
  return policy + std::string(setting.copies > 1 ? kTwice : "");
}

std::string Schedule::text() const {
  std::ostringstream out;
  out << policy_of(setting) << ' ' << setting.shards << 'x' << setting.members << 'x'
      << setting.steps << '/' << setting.checkpoint_every << ':';
  for (const auto& [at, deviation] : deviations)
    out << ' ' << at << static_cast<char>(deviation.fault) << deviation.argument;
  return out.str();
}

Schedule Schedule::parse(const std::string& text) {
  Schedule schedule;
  Setting& setting = schedule.setting;
  std::istringstream in(text);
  std::string policy;
  char mark[4] = {};
  in >> policy >> setting.shards >> mark[0] >> setting.members >> mark[1] >> setting.steps >>
      mark[2] >> setting.checkpoint_every >> mark[3];
  setting.copies = policy.ends_with(kTwice) ? 2 : 1;
  setting.bounded = policy.starts_with("bounded");
  setting.sync = policy.starts_with("sync") || policy.starts_with("backup");
  if (policy.starts_with("backup1") || policy.starts_with("backup2"))
    setting.backups = policy[6] - '0';
  if (policy.starts_with("bounded1") || policy.starts_with("bounded2"))
    setting.staleness = policy[7] - '0';
  if (!in || std::string(mark, 4) != "xx/:" || policy != policy_of(setting))
    throw std::invalid_argument("expected a schedule like \"sync 1x2x3/1: 12k0\", found " + text);
  int at = 0;
  char fault = 0;
  Deviation deviation;
  while (in >> at >> fault >> deviation.argument) {
    deviation.fault = static_cast<Fault>(fault);
    if (std::find(std::begin(kFaults), std::end(kFaults), deviation.fault) == std::end(kFaults))
      throw std::invalid_argument("no such fault: " + std::string(1, fault));
    schedule.deviations[at] = deviation;
  }
  return schedule;
}

Schedule random_schedule(uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto below = [&](int n) { return static_cast<int>(engine() % static_cast<uint64_t>(n)); };
  Schedule schedule;
  Setting& setting = schedule.setting;
  setting.shards = 1 + below(3);
  setting.members = 1 + below(3);
  setting.sync = below(4) != 0;
  setting.steps = 2 + below(4);
  setting.checkpoint_every = 1 + below(3);
  const int horizon = 30 + below(300);
  const int faults = below(9);
  for (int i = 0; i < faults; ++i) {
    const Fault fault = kFaults[1 + below(static_cast<int>(std::size(kFaults)) - 1)];
    schedule.deviations[below(horizon)] = {fault, below(64)};
  }
  // The share of events out of order, in percent: from a fair order to hardly any order at all.
  const int reorder = below(3) * 25;
  for (int at = 0; at < horizon; ++at)
    if (below(100) < reorder) schedule.deviations.try_emplace(at, Deviation{Fault::pick, below(8)});
  if (setting.sync)
    setting.backups = below(setting.members);
  else
    setting.bounded = below(2) == 0;
  if (setting.shards > 1 && setting.backups == 0) setting.copies = 1 + below(2);
  if (setting.bounded) setting.staleness = below(3);
  return schedule;
}

namespace {

// Leaves out `count` deviations at a time if the rest still fails.
bool leave_out(Schedule& failing, size_t count, const std::function<bool(const Schedule&)>& fails) {
  bool shorter = false;
  for (size_t begin = 0; begin < failing.deviations.size();) {
    Schedule candidate = failing;
    const auto first = std::next(candidate.deviations.begin(), static_cast<ptrdiff_t>(begin));
    const size_t most = candidate.deviations.size() - begin;
    candidate.deviations.erase(first,
                               std::next(first, static_cast<ptrdiff_t>(std::min(count, most))));
    if (fails(candidate)) {
      failing = candidate;
      shorter = true;
    } else {
      begin += count;
    }
  }
  return shorter;
}

bool make_smaller(Schedule& failing, const std::function<bool(const Schedule&)>& fails) {
  const auto attempt = [&](auto change) {
    Schedule candidate = failing;
    if (!change(candidate.setting) || !fails(candidate)) return false;
    failing = candidate;
    return true;
  };
  return attempt([](Setting& s) { return s.shards-- > s.copies; }) ||
         attempt([](Setting& s) { return s.members-- > s.backups + 1; }) ||
         attempt([](Setting& s) { return s.steps-- > 1; });
}

}  // namespace

Schedule shrink(Schedule failing, const std::function<bool(const Schedule&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = make_smaller(failing, fails);
    for (size_t count = failing.deviations.size(); count > 0; count /= 2)
      smaller |= leave_out(failing, count, fails);
  }
  return failing;
}

}  // namespace muster::ps::protocol
