#include "operator/controller/work_queue.h"

#include <algorithm>

namespace muster::controller {

std::chrono::milliseconds BackOff::after(int failures) const {
  constexpr int kDoublings = 20;
  return std::min(first * (int64_t{1} << std::clamp(failures - 1, 0, kDoublings)), longest);
}

void WorkQueue::add(const std::string& key, api::Time at) {
  const std::lock_guard lock(mutex_);
  add_locked(key, at);
}

void WorkQueue::add_locked(const std::string& key, api::Time at) {
  const auto [found, made] = due_.try_emplace(key, at);
  if (!made) found->second = std::min(found->second, at);
}

std::optional<std::string> WorkQueue::take(api::Time now, api::Time* since) {
  const std::lock_guard lock(mutex_);
  auto oldest = due_.end();
  for (auto entry = due_.begin(); entry != due_.end(); ++entry) {
    if (entry->second > now || taken_.contains(entry->first)) continue;
    if (oldest == due_.end() || entry->second < oldest->second) oldest = entry;
  }
  if (oldest == due_.end()) return std::nullopt;
  std::string key = oldest->first;
  if (since != nullptr) *since = oldest->second;
  due_.erase(oldest);
  taken_.insert(key);
  return key;
}

void WorkQueue::done(const std::string& key) {
  const std::lock_guard lock(mutex_);
  taken_.erase(key);
}

void WorkQueue::failed(const std::string& key, api::Time now) {
  const std::lock_guard lock(mutex_);
  taken_.erase(key);
  // What was added meanwhile waits too: it would meet the same trouble.
  due_[key] = now + back_off_.after(++failures_[key]);
}

void WorkQueue::succeeded(const std::string& key) {
  const std::lock_guard lock(mutex_);
  failures_.erase(key);
}

void WorkQueue::forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  due_.erase(key);
  failures_.erase(key);
}

int WorkQueue::failures(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

int WorkQueue::due(api::Time now) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::ranges::count_if(due_, [&](const auto& entry) {
    return entry.second <= now && !taken_.contains(entry.first);
  }));
}

std::optional<api::Time> WorkQueue::next() const {
  const std::lock_guard lock(mutex_);
  std::optional<api::Time> next;
  for (const auto& [key, at] : due_) {
    if (!taken_.contains(key) && (!next || at < *next)) next = at;
  }
  return next;
}

}  // namespace muster::controller
