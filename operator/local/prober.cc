#include "operator/local/prober.h"

#include "common/documents/json.h"
#include "common/error.h"
#include "common/net/http_get.h"

namespace muster::local {

namespace {

constexpr auto kPeriod = std::chrono::milliseconds(250);
constexpr auto kHealthPeriod = std::chrono::seconds(2);
constexpr auto kPatience = std::chrono::milliseconds(1000);

std::optional<std::string> get(const std::string& address, const char* path) {
  try {
    return http_get(address, path, kPatience);
  } catch (const Unavailable&) {
    return std::nullopt;  // not started, busy, or gone: ask again later
  }
}

}  // namespace

Prober::Prober(std::function<void()> on_ready)
    : on_ready_(std::move(on_ready)), thread_([this] { run(); }) {}

Prober::~Prober() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prober::watch(const std::string& uid, const std::string& address, bool progress) {
  {
    const MutexLock lock(mutex_);
    Target& target = targets_[uid] = {};
    target.address = address;
    target.progress = progress;
  }
  changed_.notify_all();
}

void Prober::forget(const std::string& uid) {
  const MutexLock lock(mutex_);
  targets_.erase(uid);
}

bool Prober::is_ready(const std::string& uid) const {
  const MutexLock lock(mutex_);
  const auto found = targets_.find(uid);
  return found != targets_.end() && found->second.ready;
}

Prober::Clock::duration Prober::silence(const std::string& uid) const {
  const MutexLock lock(mutex_);
  const auto found = targets_.find(uid);
  if (found == targets_.end() || !found->second.silent_since) return {};
  return Clock::now() - *found->second.silent_since;
}

Json Prober::progress() const {
  const MutexLock lock(mutex_);
  return progress_;
}

Prober::Clock::duration Prober::age() const {
  const MutexLock lock(mutex_);
  return Clock::now() - answered_;
}

void Prober::run() {
  MutexLock lock(mutex_);
  while (!stop_) {
    const std::map<std::string, Target> targets = targets_;
    lock.unlock();
    for (const auto& [uid, target] : targets) {
      if (Clock::now() >= target.ask_again) ask(uid, target);
    }
    lock.lock();
    changed_.wait_for(lock, kPeriod, [this]() MUSTER_REQUIRES(mutex_) { return stop_; });
  }
}

void Prober::ask(const std::string& uid, const Target& target) {
  const bool asks_progress = target.progress && target.ready;
  const auto asked = Clock::now();
  const std::optional<std::string> body =
      get(target.address, asks_progress ? "/progress" : "/healthz");
  if (note_answer(uid, asked, body.has_value())) on_ready_();
  if (!asks_progress || !body) return;
  Json answer = parse_or_null(*body);
  if (!answer.is_object()) return;
  const MutexLock lock(mutex_);
  if (!targets_.contains(uid)) return;
  progress_ = std::move(answer);
  answered_ = Clock::now();
}

// Returns true if the answer makes the replica ready.
bool Prober::note_answer(const std::string& uid, Clock::time_point asked, bool answered) {
  const MutexLock lock(mutex_);
  const auto found = targets_.find(uid);
  if (found == targets_.end()) return false;
  Target& target = found->second;
  const bool becomes_ready = answered && !target.ready;
  // A silent replica that was ready takes the full timeout, so it is asked seldom: the others must
  // not wait for it often.
  const bool often = !target.ready || (target.progress && answered);
  target.ask_again = asked + (often ? Clock::duration::zero() : kHealthPeriod);
  if (answered) {
    target.silent_since.reset();
  } else if (target.ready && !target.silent_since) {
    target.silent_since = asked;
  }
  target.ready = target.ready || answered;
  return becomes_ready;
}

}  // namespace muster::local
