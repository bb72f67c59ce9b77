#include "tests/unit/operator/plan/simulated_world.h"

#include <algorithm>
#include <tuple>

namespace muster::plan {
namespace {

constexpr size_t kMoments = 12;

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::ranges::find(list, item) != list.end();
}

void ask(ObservedReplica& replica) {
  if (!replica.deleting) replica.ended_first = !is_live(replica);
  replica.deleting = true;
}

}  // namespace

bool lives(const ObservedReplica& replica) {
  return replica.phase == Phase::pending || replica.phase == Phase::running;
}

ObservedReplica* SimulatedWorld::find(const std::string& uid) {
  auto found = std::ranges::find(replicas_, uid, &ObservedReplica::uid);
  return found == replicas_.end() ? nullptr : &*found;
}

void SimulatedWorld::remember() {
  moments_.push_back(replicas_);
  if (moments_.size() <= kMoments) return;
  moments_.pop_front();
  ++first_moment_;
}

void SimulatedWorld::create(const CreateReplica& creation) {
  const bool taken = std::ranges::any_of(replicas_, [&](const ObservedReplica& replica) {
    return replica.role == creation.role && replica.index == creation.index &&
           replica.attempt == creation.attempt;
  });
  if (taken) return;
  ObservedReplica replica;
  replica.role = creation.role;
  replica.index = creation.index;
  replica.run = creation.run;
  replica.attempt = creation.attempt;
  replica.uid = std::to_string(++created_);
  replicas_.push_back(std::move(replica));
  remember();
  last_creation_ = newest_moment();
}

void SimulatedWorld::remove(const RemoveReplica& removal) {
  ObservedReplica* replica = find(removal.uid);
  if (!replica) return;
  const bool has_ended = !lives(*replica) && !is_cut_off(removal.uid);
  if (has_ended && contains(job.status.counted_uids, removal.uid)) {
    std::erase_if(replicas_, [&](const auto& other) { return other.uid == removal.uid; });
  } else {
    ask(*replica);
  }
  remember();
}

void SimulatedWorld::start(const std::string& uid) {
  ObservedReplica* replica = find(uid);
  replica->ready = replica->phase == Phase::running;
  if (replica->phase == Phase::pending) replica->started = now;
  replica->phase = Phase::running;
  remember();
}

void SimulatedWorld::end(const std::string& uid, int code, const std::string& reason) {
  ObservedReplica* replica = find(uid);
  replica->phase = code == 0 ? Phase::succeeded : Phase::failed;
  replica->exit_code = code;
  replica->reason = reason;
  replica->finished = now;
  replica->ready = false;
  remember();
}

void SimulatedWorld::restart_in_place(const std::string& uid, int code) {
  ObservedReplica* replica = find(uid);
  ++replica->restarts;
  replica->exit_code = code;
  replica->ready = false;
  remember();
}

void SimulatedWorld::crash_loop(const std::string& uid) {
  ObservedReplica* replica = find(uid);
  replica->reason = "CrashLoopBackOff";
  replica->exit_code = 1;
  replica->ready = false;
  remember();
}

void SimulatedWorld::ask_to_leave(const std::string& uid) {
  ask(*find(uid));
  remember();
}

void SimulatedWorld::cut_off(const std::string& uid) {
  ObservedReplica* replica = find(uid);
  cut_off_[uid] = *replica;
  was_cut_off_.insert(uid);
  replica->phase = Phase::failed;
  replica->exit_code.reset();
  replica->reason = "NodeLost";
  replica->ready = false;
  remember();
}

void SimulatedWorld::heal(const std::string& uid) {
  ObservedReplica* replica = find(uid);
  const bool deleting = replica->deleting;
  *replica = cut_off_.at(uid);
  replica->deleting = replica->deleting || deleting;
  cut_off_.erase(uid);
  remember();
}

void SimulatedWorld::vanish(const std::string& uid) {
  cut_off_.erase(uid);
  std::erase_if(replicas_, [&](const ObservedReplica& replica) { return replica.uid == uid; });
  remember();
}

void SimulatedWorld::collect() {
  const size_t erased = std::erase_if(replicas_, [&](const ObservedReplica& replica) {
    return replica.deleting && !lives(replica) && !is_cut_off(replica.uid) &&
           contains(job.status.counted_uids, replica.uid);
  });
  if (erased > 0) remember();
}

Observed SimulatedWorld::view_of(int moment) const {
  Observed view;
  view.replicas = moments_[static_cast<size_t>(std::max(moment, first_moment_) - first_moment_)];
  return view;
}

Observed SimulatedWorld::mixed_view(int oldest, Dice& dice) const {
  // A cluster has one object of a name at a time, and so has each of its views.
  using Name = std::tuple<api::Role, int, int>;
  const auto name_of = [](const ObservedReplica& replica) {
    return Name(replica.role, replica.index, replica.attempt);
  };
  std::set<Name> ever;
  const int from = std::max(oldest, first_moment_);
  for (int moment = from; moment <= newest_moment(); ++moment) {
    for (const auto& replica : moments_[static_cast<size_t>(moment - first_moment_)]) {
      ever.insert(name_of(replica));
    }
  }
  Observed view;
  for (const Name& name : ever) {
    const int moment = from + dice.below(newest_moment() - from + 1);
    for (const auto& replica : moments_[static_cast<size_t>(moment - first_moment_)]) {
      if (name_of(replica) == name) view.replicas.push_back(replica);
    }
  }
  return view;
}

}  // namespace muster::plan
