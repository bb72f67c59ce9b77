#include "tests/unit/trainer/collective/protocol/schedule.h"

#include <algorithm>
#include <random>
#include <sstream>
#include <stdexcept>

namespace muster::collective::protocol {

std::string Schedule::text() const {
  std::ostringstream out;
  out << setting.members << '(' << setting.least << '-' << setting.most << ")r" << setting.replicas
      << ' ' << setting.batches << '/' << setting.checkpoint_every << " @"
      << static_cast<char>(setting.hosts) << ':';
  for (const auto& [at, deviation] : deviations)
    out << ' ' << at << static_cast<char>(deviation.fault) << deviation.argument;
  return out.str();
}

Schedule Schedule::parse(const std::string& text) {
  Schedule schedule;
  Setting& setting = schedule.setting;
  std::istringstream in(text);
  char mark[8] = {};
  char hosts = 0;
  in >> setting.members >> mark[0] >> setting.least >> mark[1] >> setting.most >> mark[2] >>
      mark[3] >> setting.replicas >> setting.batches >> mark[4] >> setting.checkpoint_every >>
      mark[5] >> hosts >> mark[6];
  setting.hosts = static_cast<Setting::Hosts>(hosts);
  if (!in || std::string(mark) != "(-)r/@:" || std::string("12h").find(hosts) == std::string::npos)
    throw std::invalid_argument("expected a schedule like \"2(0-2)r0 5/2 @1: 12k0\", found " +
                                text);
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
  setting.members = 1 + below(4);
  setting.most = setting.members;
  if (below(2) == 0) {
    setting.least = 1 + below(setting.members);
    setting.most = setting.members + below(3);
    if (below(2) == 0) setting.replicas = setting.most;
  }
  setting.batches = 3 + below(8);
  setting.checkpoint_every = 1 + below(3);
  constexpr Setting::Hosts kHosts[] = {Setting::Hosts::one, Setting::Hosts::two,
                                       Setting::Hosts::hidden};
  setting.hosts = kHosts[below(3)];
  const int horizon = 30 + below(250);
  const int faults = below(12);
  for (int i = 0; i < faults; ++i) {
    const Fault fault = kFaults[1 + below(static_cast<int>(std::size(kFaults)) - 1)];
    schedule.deviations[below(horizon)] = {fault, below(64)};
  }
  // From a fair order to hardly any order at all.
  const int reorder = below(3) * 25;
  for (int at = 0; at < horizon; ++at)
    if (below(100) < reorder) schedule.deviations.try_emplace(at, Deviation{Fault::pick, below(8)});
  return schedule;
}

namespace {

// Leaves out `count` deviations at a time where the rest still fails.
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
  return attempt([](Setting& s) { return s.members-- > std::max(1, s.least); }) ||
         attempt([](Setting& s) { return s.batches-- > 1; });
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

}  // namespace muster::collective::protocol
