#include "operator/local/prober.h"

#include "common/error.h"
#include "common/http_server.h"

namespace muster::local {

namespace {

constexpr auto kPeriod = std::chrono::milliseconds(250);
constexpr auto kPatience = std::chrono::milliseconds(1000);

std::optional<std::string> get(const std::string& address, const char* path) {
  try {
    return http_get(address, path, kPatience);
  } catch (const Unavailable&) {
    return std::nullopt;  // not there yet, busy, or gone: asked again
  }
}

}  // namespace

Prober::Prober(std::function<void()> on_ready)
    : on_ready_(std::move(on_ready)), thread_([this] { run(); }) {}

Prober::~Prober() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prober::watch(const std::string& uid, const std::string& address, bool progress) {
  {
    const std::lock_guard lock(mutex_);
    targets_[uid] = {address, progress};
  }
  changed_.notify_all();
}

void Prober::forget(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  targets_.erase(uid);
  ready_.erase(uid);
}

bool Prober::is_ready(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  return ready_.contains(uid);
}

Json Prober::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

void Prober::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const std::map<std::string, Target> targets = targets_;
    const std::set<std::string> ready = ready_;
    lock.unlock();
    for (const auto& [uid, target] : targets) {
      if (target.progress || !ready.contains(uid)) ask(uid, target);
    }
    lock.lock();
    changed_.wait_for(lock, kPeriod, [this] { return stop_; });
  }
}

void Prober::ask(const std::string& uid, const Target& target) {
  if (!is_ready(uid)) {
    if (!get(target.address, "/healthz")) return;
    {
      const std::lock_guard lock(mutex_);
      if (!targets_.contains(uid)) return;
      ready_.insert(uid);
    }
    on_ready_();
  }
  if (!target.progress) return;
  const std::optional<std::string> body = get(target.address, "/progress");
  if (!body) return;
  Json answer = Json::parse(*body, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return;
  const std::lock_guard lock(mutex_);
  if (targets_.contains(uid)) progress_ = std::move(answer);
}

}  // namespace muster::local
