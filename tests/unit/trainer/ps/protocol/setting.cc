#include "tests/unit/trainer/ps/protocol/setting.h"

namespace muster::ps::protocol {

namespace {
constexpr std::string_view kTwice = "-twice";
}

std::string Setting::policy() const {
  std::string policy = sync ? "sync" : bounded ? "bounded" : "async";
  if (backups > 0) policy = "backup" + std::to_string(backups);
  if (staleness > 0) policy += std::to_string(staleness);
  return policy + std::string(copies > 1 ? kTwice : "");
}

std::string Setting::text() const {
  std::ostringstream out;
  out << policy() << ' ' << shards << 'x' << members << 'x' << steps << '/' << checkpoint_every;
  return out.str();
}

bool Setting::read(std::istream& in) {
  std::string name;
  char mark[3] = {};
  in >> name >> shards >> mark[0] >> members >> mark[1] >> steps >> mark[2] >> checkpoint_every;
  copies = name.ends_with(kTwice) ? 2 : 1;
  bounded = name.starts_with("bounded");
  sync = name.starts_with("sync") || name.starts_with("backup");
  if (name.starts_with("backup1") || name.starts_with("backup2")) backups = name[6] - '0';
  if (name.starts_with("bounded1") || name.starts_with("bounded2")) staleness = name[7] - '0';
  return in && std::string(mark, 3) == "xx/" && name == policy();
}

Schedule<Setting> Setting::random_schedule(uint64_t seed) {
  Draws draws(seed);
  Setting setting;
  setting.shards = 1 + draws.below(3);
  setting.members = 1 + draws.below(3);
  setting.sync = draws.below(4) != 0;
  setting.steps = 2 + draws.below(4);
  setting.checkpoint_every = 1 + draws.below(3);
  const Deviations deviations = random_deviations(draws, kFaults, 300, 9);
  if (setting.sync)
    setting.backups = draws.below(setting.members);
  else
    setting.bounded = draws.below(2) == 0;
  if (setting.shards > 1 && setting.backups == 0) setting.copies = 1 + draws.below(2);
  if (setting.bounded) setting.staleness = draws.below(3);
  return {setting, deviations};
}

std::vector<Setting> Setting::smaller() const {
  std::vector<Setting> all;
  const auto less = [&](int Setting::*size, int least) {
    if (this->*size > least) --(all.emplace_back(*this).*size);
  };
  less(&Setting::shards, copies);
  less(&Setting::members, backups + 1);
  less(&Setting::steps, 1);
  return all;
}

}  // namespace muster::ps::protocol
