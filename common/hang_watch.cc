#include "common/hang_watch.h"

#include <algorithm>

namespace muster {

namespace {

using std::chrono::milliseconds;

constexpr int kTimesLongestPause = 10;
constexpr int kTimesHopeless = 3;
constexpr int kTimesHopelessAtFirst = 20;
// We are asked about once a second. After a longer pause it was the whole process that stood still
// (SIGSTOP, a sleeping machine, no CPU time), and none of its work.
constexpr milliseconds kProcessStoodStill{10'000};

}  // namespace

// Work that is over has gone on.
void HangWatch::note_ends(const std::vector<WatchedWork::Seen>& works) {
  const auto is_over = [&](const auto& followed) {
    return followed.second.kind == WatchedWork::Kind::computing &&
           std::ranges::find(works, followed.first, &WatchedWork::Seen::id) == works.end();
  };
  has_gone_on_ = has_gone_on_ || std::ranges::any_of(followed_, is_over);
}

std::vector<Stall> HangWatch::look(const std::vector<WatchedWork::Seen>& works, Time now) {
  if (now - last_look_ > kProcessStoodStill) followed_.clear();
  last_look_ = now;
  note_ends(works);
  std::map<uint64_t, Followed> present;
  std::vector<Stall> stalls;
  for (const WatchedWork::Seen& work : works) {
    const auto before = followed_.find(work.id);
    Followed& followed = present[work.id];
    followed = before == followed_.end() ? Followed{work.kind, work.beats, now} : before->second;
    const auto pause = std::chrono::duration_cast<milliseconds>(now - followed.since);
    if (followed.beats != work.beats) {
      longest(work.kind) = std::max(longest(work.kind), pause);
      has_gone_on_ = has_gone_on_ || work.kind == WatchedWork::Kind::computing;
      followed = {work.kind, work.beats, now};
      continue;
    }
    const milliseconds limit = std::max(least_, kTimesLongestPause * longest(work.kind));
    if (pause < limit) continue;
    const int times = has_gone_on_ ? kTimesHopeless : kTimesHopelessAtFirst;
    const bool hopeless = work.kind == WatchedWork::Kind::computing && pause >= times * limit;
    stalls.push_back({work.id, work.kind, work.doing, pause, hopeless});
  }
  followed_ = std::move(present);
  const bool storage_hangs = std::ranges::any_of(
      stalls, [](const Stall& stall) { return stall.kind == WatchedWork::Kind::storage; });
  for (Stall& stall : stalls) stall.hopeless = stall.hopeless && !storage_hangs;
  std::ranges::sort(stalls, std::greater<>(), &Stall::lasted);
  return stalls;
}

}  // namespace muster
