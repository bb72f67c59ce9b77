#include "operator/kube/progress_poller.h"

#include <algorithm>
#include <tuple>

#include "common/error.h"
#include "common/http_server.h"
#include "common/json.h"
#include "operator/api/progress.h"

namespace muster::kube {

namespace {

constexpr std::chrono::milliseconds kPatience(1'000);

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
  const std::lock_guard lock(mutex_);
  Target& target = targets_[job];
  if (target.pod_uid == pod_uid && target.address == address) return;
  target.pod_uid = pod_uid;
  target.address = address;
  target.due = Clock::now();
  target.pause = settings_.until_first_step;
  target.silent = false;
  ++changes_;
  changed_.notify_all();
}

void ProgressPoller::rest(const std::string& job) {
  const std::lock_guard lock(mutex_);
  const auto found = targets_.find(job);
  if (found == targets_.end()) return;
  found->second.pod_uid.clear();
  found->second.address.clear();
}

void ProgressPoller::conclude(const std::string& job, Json progress) {
  const std::lock_guard lock(mutex_);
  Target& target = targets_[job];
  target.pod_uid.clear();
  target.address.clear();
  target.progress = std::move(progress);
}

void ProgressPoller::forget(const std::string& job) {
  const std::lock_guard lock(mutex_);
  targets_.erase(job);
}

Json ProgressPoller::progress(const std::string& job) const {
  const std::lock_guard lock(mutex_);
  const auto found = targets_.find(job);
  return found == targets_.end() ? Json() : found->second.progress;
}

// Who is due first. Of those that are due, one that is silent, which may keep us for a second, is
// asked when nobody else is to be.
ProgressPoller::Targets::iterator ProgressPoller::first(Clock::time_point now) {
  const auto turn = [now](const Target& target) {
    const bool due = target.due <= now;
    return std::tuple(!due, due && target.silent, target.due);
  };
  auto first = targets_.end();
  for (auto entry = targets_.begin(); entry != targets_.end(); ++entry) {
    const Target& target = entry->second;
    if (target.asking || target.address.empty()) continue;
    if (first == targets_.end() || turn(target) < turn(first->second)) first = entry;
  }
  return first;
}

// The one that is due, when it is.
std::optional<ProgressPoller::Question> ProgressPoller::next(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const Clock::time_point now = Clock::now();
    const auto next = first(now);
    const auto is_other = [this, seen = changes_] { return changes_ != seen; };
    if (next == targets_.end()) {
      changed_.wait(lock, stop, is_other);
    } else if (next->second.due > now) {
      // A copy: it is read again after the wait, when the target may be gone.
      const Clock::time_point due = next->second.due;
      changed_.wait_until(lock, stop, due, is_other);
    } else {
      next->second.asking = true;
      return Question{next->first, next->second.pod_uid, next->second.address};
    }
  }
  return std::nullopt;
}

// True if that is news.
bool ProgressPoller::keep(const Question& question, const std::optional<std::string>& answer) {
  Json progress;
  if (answer) progress = api::progress_of(Json::parse(*answer, nullptr, false));
  const std::lock_guard lock(mutex_);
  const auto found = targets_.find(question.job);
  if (found == targets_.end()) return false;
  Target& target = found->second;
  target.asking = false;
  ++changes_;
  changed_.notify_all();
  if (target.pod_uid != question.pod_uid) return false;
  const auto now = Clock::now();
  target.silent = !answer;
  if (progress.is_null()) {
    target.due = now + target.pause;
    target.pause = std::min(2 * target.pause, settings_.longest_pause);
    return false;
  }
  const bool began = integer_or(progress, "step", 0) > 0;
  target.pause = settings_.until_first_step;
  target.due = now + (began ? settings_.period : settings_.until_first_step);
  if (target.progress == progress) return false;
  target.progress = std::move(progress);
  return true;
}

void ProgressPoller::run(const std::stop_token& stop) {
  while (const std::optional<Question> question = next(stop)) {
    std::optional<std::string> answer;
    try {
      answer = ask_(question->address);
    } catch (const Unavailable&) {
      // Not there yet, busy, or gone: asked again.
    }
    if (keep(*question, answer)) on_news_(question->job);
  }
}

}  // namespace muster::kube
