#include "common/threads/hang_watch.h"

#include <algorithm>

namespace muster {

namespace {

using std::chrono::milliseconds;

constexpr int kTimesLongestPause = 10;
constexpr int kTimesHopeless = 3;
constexpr int kTimesHopelessAtFirst = 20;
// look() is called about once a second. After a longer pause the whole process stood still
// (SIGSTOP, a sleeping machine, no CPU time), and not its work.
constexpr milliseconds kProcessStoodStill{10'000};

}  // namespace

// Learns how long the work was without a sign of life until now.
void HangWatch::learn(const Followed& followed, Time now) {
  auto& longest = longest_pause_[followed.kind];
  longest = std::max(longest, std::chrono::duration_cast<milliseconds>(now - followed.since));
  if (followed.kind == WatchedWork::Kind::computing) has_gone_on_.insert(followed.doing);
}

// Learns from work that has ended: its end counts as a sign of life.
void HangWatch::learn_from_ends(const std::vector<WatchedWork::Seen>& works, Time now) {
  for (const auto& [id, followed] : followed_)
    if (std::ranges::find(works, id, &WatchedWork::Seen::id) == works.end()) learn(followed, now);
}

std::vector<Stall> HangWatch::look(const std::vector<WatchedWork::Seen>& works, Time now) {
  if (now - last_look_ > kProcessStoodStill) followed_.clear();
  last_look_ = now;
  learn_from_ends(works, now);
  std::map<uint64_t, Followed> present;
  std::vector<Stall> stalls;
  for (const WatchedWork::Seen& work : works) {
    const Followed fresh{work.kind, work.doing, work.beats, now};
    const auto before = followed_.find(work.id);
    Followed& followed = present[work.id] = before == followed_.end() ? fresh : before->second;
    if (work.covered) {
      followed = fresh;
    } else if (followed.beats != work.beats) {
      learn(followed, now);
      followed = fresh;
    }
    const auto pause = std::chrono::duration_cast<milliseconds>(now - followed.since);
    const milliseconds limit = std::max(least_, kTimesLongestPause * longest_pause_[work.kind]);
    if (pause < limit) continue;
    const int times = has_gone_on_.contains(work.doing) ? kTimesHopeless : kTimesHopelessAtFirst;
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
