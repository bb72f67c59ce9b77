#include "tests/unit/trainer/collective/protocol/setting.h"

#include <algorithm>

namespace muster::collective::protocol {

namespace {
constexpr Setting::Hosts kHosts[] = {Setting::Hosts::one, Setting::Hosts::two,
                                     Setting::Hosts::hidden};
}

std::string Setting::text() const {
  std::ostringstream out;
  out << members << '(' << least << '-' << most << ")r" << replicas << ' ' << batches << '/'
      << checkpoint_every << " @" << static_cast<char>(hosts);
  return out.str();
}

bool Setting::read(std::istream& in) {
  char mark[6] = {};
  char host = 0;
  in >> members >> mark[0] >> least >> mark[1] >> most >> mark[2] >> mark[3] >> replicas >>
      batches >> mark[4] >> checkpoint_every >> mark[5] >> host;
  hosts = static_cast<Hosts>(host);
  return in && std::string(mark, 6) == "(-)r/@" &&
         std::ranges::find(kHosts, hosts) != std::end(kHosts);
}

Schedule<Setting> Setting::random_schedule(uint64_t seed) {
  Draws draws(seed);
  Setting setting;
  setting.members = 1 + draws.below(4);
  setting.most = setting.members;
  if (draws.below(2) == 0) {
    setting.least = 1 + draws.below(setting.members);
    setting.most = setting.members + draws.below(3);
    if (draws.below(2) == 0) setting.replicas = setting.most;
  }
  setting.batches = 3 + draws.below(8);
  setting.checkpoint_every = 1 + draws.below(3);
  setting.hosts = kHosts[draws.below(3)];
  return {setting, random_deviations(draws, kFaults, 250, 12)};
}

std::vector<Setting> Setting::smaller() const {
  std::vector<Setting> all;
  if (members > std::max(1, least)) --all.emplace_back(*this).members;
  if (batches > 1) --all.emplace_back(*this).batches;
  return all;
}

}  // namespace muster::collective::protocol
