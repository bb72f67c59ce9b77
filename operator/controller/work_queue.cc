#include "operator/controller/work_queue.h"

#include <algorithm>

namespace muster::controller {

namespace {

std::string namespace_of(const std::string& key) {
  return key.substr(0, key.find('/'));
}

}  // namespace

std::chrono::milliseconds BackOff::after(int failures) const {
  constexpr int kDoublings = 20;
  return std::min(first * (int64_t{1} << std::clamp(failures - 1, 0, kDoublings)), longest);
}

void WorkQueue::add(const std::string& key, Moment at) {
  const MutexLock lock(mutex_);
  add_locked(key, at);
}

void WorkQueue::add_locked(const std::string& key, Moment at) {
  if (const auto rest = resting_.find(key); rest != resting_.end()) at = std::max(at, rest->second);
  const auto found = due_.find(key);
  set_due(key, found == due_.end() ? at : std::min(found->second, at));
}

void WorkQueue::set_due(const std::string& key, Moment at) {
  drop_due(key);
  due_[key] = at;
  if (!taken_.contains(key)) later_.emplace(at, key);
}

void WorkQueue::drop_due(const std::string& key) {
  const auto found = due_.find(key);
  if (found == due_.end()) return;
  const std::pair entry(found->second, key);
  later_.erase(entry);
  if (const auto ready = ready_.find(namespace_of(key)); ready != ready_.end())
    ready->second.erase(entry);
  due_.erase(found);
}

void WorkQueue::promote(Moment now) {
  while (!later_.empty() && later_.begin()->first <= now) {
    auto entry = later_.extract(later_.begin());
    const std::string name_space = namespace_of(entry.value().second);
    const auto [ready, is_new] = ready_.try_emplace(name_space);
    if (is_new) turns_.push_back(name_space);
    ready->second.insert(std::move(entry));
  }
}

std::optional<std::string> WorkQueue::take(Moment now, Moment* since) {
  const MutexLock lock(mutex_);
  promote(now);
  while (!turns_.empty()) {
    const std::string name_space = std::move(turns_.front());
    turns_.pop_front();
    const Order& ready = ready_.at(name_space);
    if (ready.empty()) {
      ready_.erase(name_space);
      continue;
    }
    turns_.push_back(name_space);
    const auto [at, key] = *ready.begin();
    if (since != nullptr) *since = at;
    drop_due(key);
    taken_.insert(key);
    return key;
  }
  return std::nullopt;
}

void WorkQueue::done(const std::string& key) {
  const MutexLock lock(mutex_);
  release(key);
}

void WorkQueue::done(const std::string& key, Moment now, Moment rested) {
  const MutexLock lock(mutex_);
  std::erase_if(resting_, [&](const auto& entry) { return entry.second <= now; });
  resting_[key] = rested;
  if (const auto found = due_.find(key); found != due_.end())
    set_due(key, std::max(found->second, rested));
  release(key);
}

void WorkQueue::release(const std::string& key) {
  taken_.erase(key);
  const auto found = due_.find(key);
  if (found != due_.end()) later_.emplace(found->second, key);
}

void WorkQueue::failed(const std::string& key, Moment now) {
  const MutexLock lock(mutex_);
  release(key);
  // A key that was added in between waits too, because its pass would fail in the same way.
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
  auto due = std::ranges::count_if(later_, [&](const auto& entry) { return entry.first <= now; });
  for (const auto& [name_space, ready] : ready_) due += std::ssize(ready);
  return static_cast<int>(due);
}

std::optional<Moment> WorkQueue::next() const {
  const MutexLock lock(mutex_);
  std::optional<Moment> next;
  if (!later_.empty()) next = later_.begin()->first;
  for (const auto& [name_space, ready] : ready_)
    if (!ready.empty()) next = std::min(next.value_or(Moment::max()), ready.begin()->first);
  return next;
}

}  // namespace muster::controller
