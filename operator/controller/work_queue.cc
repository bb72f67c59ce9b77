#include "operator/controller/work_queue.h"

#include <algorithm>

namespace muster::controller {

std::chrono::milliseconds BackOff::after(int failures) const {
  constexpr int kDoublings = 20;
  return std::min(first * (int64_t{1} << std::clamp(failures - 1, 0, kDoublings)), longest);
}

void WorkQueue::add(const std::string& key, Moment at) {
  const MutexLock lock(mutex_);
  add_locked(key, at);
}

void WorkQueue::add_locked(const std::string& key, Moment at) {
  const auto found = due_.find(key);
  set_due(key, found == due_.end() ? at : std::min(found->second, at));
}

void WorkQueue::set_due(const std::string& key, Moment at) {
  drop_due(key);
  due_[key] = at;
  if (!taken_.contains(key)) order_.emplace(at, key);
}

void WorkQueue::drop_due(const std::string& key) {
  const auto found = due_.find(key);
  if (found == due_.end()) return;
  order_.erase({found->second, key});
  due_.erase(found);
}

std::optional<std::string> WorkQueue::take(Moment now, Moment* since) {
  const MutexLock lock(mutex_);
  if (order_.empty() || order_.begin()->first > now) return std::nullopt;
  const auto [at, key] = *order_.begin();
  if (since != nullptr) *since = at;
  drop_due(key);
  taken_.insert(key);
  return key;
}

void WorkQueue::done(const std::string& key) {
  const MutexLock lock(mutex_);
  release(key);
}

void WorkQueue::release(const std::string& key) {
  taken_.erase(key);
  const auto found = due_.find(key);
  if (found != due_.end()) order_.emplace(found->second, key);
}

void WorkQueue::failed(const std::string& key, Moment now) {
  const MutexLock lock(mutex_);
  release(key);
  // A key that was added meanwhile waits too: its pass would meet the same trouble.
  set_due(key, now + back_off_.after(++failures_[key]));
}

void WorkQueue::refused(const std::string& key, Moment now) {
  const MutexLock lock(mutex_);
  release(key);
  ++failures_[key];
  add_locked(key, now + back_off_.longest);
}

void WorkQueue::succeeded(const std::string& key) {
  const MutexLock lock(mutex_);
  failures_.erase(key);
}

int WorkQueue::failures(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

int WorkQueue::due(Moment now) const {
  const MutexLock lock(mutex_);
  return static_cast<int>(
      std::ranges::count_if(order_, [&](const auto& entry) { return entry.first <= now; }));
}

std::optional<Moment> WorkQueue::next() const {
  const MutexLock lock(mutex_);
  if (order_.empty()) return std::nullopt;
  return order_.begin()->first;
}

}  // namespace muster::controller
