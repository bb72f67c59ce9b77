#include "operator/kube/api/event_ledger.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "common/digest.h"
#include "common/text/shorten.h"

namespace muster::kube {

EventSubject subject_of(const Resource& resource, const std::string& name_space,
                        const std::string& name, const std::string& uid) {
  return {resource.api_version(), resource.kind, name_space, name, uid};
}

namespace {

constexpr size_t kLongestMessage = 1'024;
constexpr int kMostTries = 3;

// Returns "<object>.<hash>": equal events have equal names, whichever process writes them.
std::string name_of(const EventSubject& subject, const EventText& text) {
  Sha256 hash;
  for (const std::string& part : {subject.uid, subject.kind, subject.name, text.reason,
                                  text.message, std::string(text.warning ? "w" : "n")}) {
    hash.update(std::as_bytes(std::span(part.c_str(), part.size() + 1)));
  }
  return subject.name + "." + hash.finish().substr(0, 16);
}

}  // namespace

EventLedger::Recorded EventLedger::record(const EventSubject& subject, EventText text, Time now) {
  text.message = shorten(text.message, kLongestMessage);
  const std::string name = name_of(subject, text);
  const std::string key = subject.name_space + "/" + name;
  const auto known = entries_.find(key);
  if (known == entries_.end()) {
    if (waiting_.size() >= limits_.waiting) return Recorded::dropped;
    if (entries_.size() >= limits_.remembered) forget_one();
    Entry& entry = entries_[key];
    entry.write.subject = subject;
    entry.write.text = std::move(text);
    entry.write.first = entry.write.last = now;
    entry.write.name = name;
    wait_until(key, entry, now);
    return Recorded::waits;
  }
  Entry& entry = known->second;
  const bool waited = entry.due.has_value();
  if (!waited) {
    if (waiting_.size() >= limits_.waiting) return Recorded::dropped;
    wait_until(key, entry, std::max(now, entry.written + limits_.again));
  }
  ++entry.write.unwritten;
  entry.write.last = now;
  return waited ? Recorded::counted : Recorded::waits;
}

void EventLedger::wait_until(const std::string& key, Entry& entry, Time due) {
  entry.due = due;
  waiting_.emplace(due, key);
}

// Forgets the event whose last occurrence is the oldest; events that wait to be written stay.
void EventLedger::forget_one() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.due) continue;
    if (oldest == entries_.end() || entry->second.write.last < oldest->second.write.last) {
      oldest = entry;
    }
  }
  if (oldest != entries_.end()) entries_.erase(oldest);
}

void EventLedger::refill(Time now) {
  if (!refilled_) tokens_ = limits_.burst;
  const auto passed = std::chrono::duration<double>(now - refilled_.value_or(now)).count();
  tokens_ = std::min(limits_.burst, tokens_ + std::max(passed, 0.0) * limits_.per_second);
  refilled_ = now;
}

std::optional<EventLedger::Write> EventLedger::take(Time now) {
  refill(now);
  if (tokens_ < 1) return std::nullopt;
  if (waiting_.empty() || waiting_.begin()->first > now) return std::nullopt;
  tokens_ -= 1;
  Entry& first = entries_.at(waiting_.begin()->second);
  waiting_.erase(waiting_.begin());
  first.due.reset();
  first.written = now;
  Write write = first.write;
  first.write.unwritten = 0;
  first.write.first_time = false;
  return write;
}

void EventLedger::failed(const Write& write, Time now) {
  const std::string key = write.subject.name_space + "/" + write.name;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (++entry.failures >= kMostTries) {
    entry.failures = 0;
    return;
  }
  entry.write.unwritten += write.unwritten;
  entry.write.first_time = write.first_time;
  if (!entry.due) wait_until(key, entry, now + limits_.again);
}

std::optional<Time> EventLedger::next() const {
  if (waiting_.empty()) return std::nullopt;
  const Time due = waiting_.begin()->first;
  if (!refilled_ || tokens_ >= 1) return due;
  const double seconds = (1 - tokens_) / limits_.per_second;
  const auto pause = std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
  return std::max(due, *refilled_ + pause);
}

}  // namespace muster::kube
