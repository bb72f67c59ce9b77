#include "operator/kube/cluster/progress_poller.h"

#include <algorithm>
#include <tuple>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/net/http_get.h"
#include "operator/api/progress.h"

namespace muster::kube {

namespace {

constexpr std::chrono::milliseconds kPatience(1'000);

int count_of(const Json& value, const char* key) {
  return static_cast<int>(std::clamp<int64_t>(integer_or(value, key, 0), 0, 1'000'000));
}

// Reads an answer, which may have any form. Unexpected parts are left out.
ProgressPoller::Group group_of(const Json& answer) {
  ProgressPoller::Group group;
  for (const Json& name : member(answer, "missing")) {
    if (name.is_string()) group.missing.insert(name.get<std::string>());
  }
  for (const Json& entry : member(answer, "restartsInPlace")) {
    const double seconds = std::clamp(number_or(entry, "seconds", 0), 0.0, 1e9);
    group.restarts[string_or(entry, "replica", "")] = {count_of(entry, "attempt"),
                                                       count_of(entry, "restarts"),
                                                       count_of(entry, "exitCode"), seconds};
  }
  return group;
}

std::string ask_over_http(const std::string& address) {
  return http_get(address, "/progress", kPatience);
}

}  // namespace

ProgressPoller::ProgressPoller(Settings settings, OnNews on_news, Ask ask)
    : settings_(settings), on_news_(std::move(on_news)), ask_(std::move(ask)) {}

ProgressPoller::ProgressPoller(Settings settings, OnNews on_news)
    : ProgressPoller(settings, std::move(on_news), ask_over_http) {}

void ProgressPoller::watch(const std::string& job, const std::string& pod_uid,
                           const std::string& address) {
  const MutexLock lock(mutex_);
  Target& target = targets_[job];
  if (target.pod_uid == pod_uid && target.address == address) return;
  target.pod_uid = pod_uid;
  target.address = address;
  target.due = Clock::now();
  target.pause = settings_.until_first_step;
  target.group = {};
  target.ledger.reset();
  ++changes_;
  changed_.notify_all();
}

void ProgressPoller::rest(const std::string& job) {
  const MutexLock lock(mutex_);
  const auto found = targets_.find(job);
  if (found == targets_.end()) return;
  found->second.pod_uid.clear();
  found->second.address.clear();
  found->second.group = {};
  found->second.ledger.reset();
}

void ProgressPoller::conclude(const std::string& job, Json progress,
                              std::optional<plan::ProcessLedger> ledger) {
  const MutexLock lock(mutex_);
  Target& target = targets_[job];
  target.pod_uid.clear();
  target.address.clear();
  target.group = {};
  target.progress = std::move(progress);
  target.ledger = std::move(ledger);
  if (target.ledger) target.ledger->final = true;
}

void ProgressPoller::forget(const std::string& job) {
  const MutexLock lock(mutex_);
  targets_.erase(job);
}

Json ProgressPoller::progress(const std::string& job) const {
  const MutexLock lock(mutex_);
  const auto found = targets_.find(job);
  return found == targets_.end() ? Json() : found->second.progress;
}

std::optional<plan::ProcessLedger> ProgressPoller::ledger(const std::string& job) const {
  const MutexLock lock(mutex_);
  const auto found = targets_.find(job);
  if (found == targets_.end() || !found->second.ledger) return std::nullopt;
  plan::ProcessLedger ledger = *found->second.ledger;
  ledger.age = std::chrono::duration<double>(Clock::now() - found->second.answered).count();
  return ledger;
}

ProgressPoller::Group ProgressPoller::group(const std::string& job) const {
  const MutexLock lock(mutex_);
  const auto found = targets_.find(job);
  return found == targets_.end() ? Group() : found->second.group;
}

// Returns the target that is due first. Among several that are due, silent ones, which may block
// for a second each, come last.
ProgressPoller::Targets::iterator ProgressPoller::first(Clock::time_point now) {
  const auto turn = [now](const Target& target) {
    const bool due = target.due <= now;
    return std::tuple(!due, due && target.group.silent, target.due);
  };
  auto first = targets_.end();
  for (auto entry = targets_.begin(); entry != targets_.end(); ++entry) {
    const Target& target = entry->second;
    if (target.asking || target.address.empty()) continue;
    if (first == targets_.end() || turn(target) < turn(first->second)) first = entry;
  }
  return first;
}

// Waits until a target is due and returns its question; returns nothing at `stop`.
std::optional<ProgressPoller::Question> ProgressPoller::next(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const Clock::time_point now = Clock::now();
    const auto next = first(now);
    const auto is_other = [this, seen = changes_]()
                              MUSTER_REQUIRES(mutex_) { return changes_ != seen; };
    if (next == targets_.end()) {
      changed_.wait(lock, stop, is_other);
    } else if (next->second.due > now) {
      // A copy, because wait_until reads `due` again after the wait, when the target may be gone.
      const Clock::time_point due = next->second.due;
      changed_.wait_until(lock, stop, due, is_other);
    } else {
      next->second.asking = true;
      return Question{next->first, next->second.pod_uid, next->second.address};
    }
  }
  return std::nullopt;
}

// Returns true if the answer is news.
bool ProgressPoller::keep(const Question& question, const std::optional<std::string>& answer) {
  Json said;
  if (answer) said = parse_or_null(*answer);
  Json progress = api::progress_of(said);
  Group group = group_of(said);
  group.silent = !answer;
  auto ledger = plan::ProcessLedger::of(said);
  const MutexLock lock(mutex_);
  const auto found = targets_.find(question.job);
  if (found == targets_.end()) return false;
  Target& target = found->second;
  target.asking = false;
  ++changes_;
  changed_.notify_all();
  if (target.pod_uid != question.pod_uid) return false;
  const auto now = Clock::now();
  const bool is_other = target.group != group;
  target.group = std::move(group);
  if (answer) {
    target.ledger = std::move(ledger);
    target.answered = now;
  }
  if (!progress.is_null()) return keep_progress(target, std::move(progress), now) || is_other;
  target.due = now + target.pause;
  target.pause = std::min(2 * target.pause, settings_.longest_pause);
  return is_other;
}

// Returns true if the progress is news.
bool ProgressPoller::keep_progress(Target& target, Json progress, Clock::time_point now) const {
  const bool began = api::steps_taken(progress) > 0;
  const bool begins = began && api::steps_taken(target.progress) == 0;
  target.pause = settings_.until_first_step;
  target.due = now + (began ? settings_.period : settings_.until_first_step);
  target.untold = target.untold || target.progress != progress;
  target.progress = std::move(progress);
  const bool is_early = began && !begins && now - target.told < settings_.between_news;
  if (!target.untold || is_early) return false;
  target.untold = false;
  target.told = now;
  return true;
}

void ProgressPoller::run(const std::stop_token& stop) {
  while (const std::optional<Question> question = next(stop)) {
    std::optional<std::string> answer;
    try {
      answer = ask_(question->address);
    } catch (const Unavailable&) {
      // The replica is not there yet, busy, or gone: it is asked again.
    }
    if (keep(*question, answer)) on_news_(question->job);
  }
}

}  // namespace muster::kube
