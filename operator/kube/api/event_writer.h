#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "common/threads/mutex.h"
#include "operator/kube/api/client.h"
#include "operator/kube/api/event_ledger.h"

namespace muster::kube {

// Writes Events in the background. Callers do not wait for a write. An Event that cannot be written
// is tried a few times and then dropped, because nothing depends on it.
class EventWriter {
 public:
  EventWriter(Transport& transport, std::string component, EventLimits limits = {});

  // Queues the Event and logs it; Events that are written together are logged once. Never blocks.
  // Thread-safe.
  void emit(const EventSubject& subject, const EventText& text);
  // Runs until `stop`; Events that are due by then are still written, within two seconds.
  void run(const std::stop_token& stop);
  uint64_t dropped() const;

 private:
  std::optional<EventLedger::Write> take();
  void write(const EventLedger::Write& write) const;
  void try_to_write(const EventLedger::Write& write);
  void flush();

  const Client client_;
  const std::string component_;
  mutable Mutex mutex_;
  StoppableConditionVariable changed_;
  EventLedger ledger_ MUSTER_GUARDED_BY(mutex_);
  uint64_t dropped_ MUSTER_GUARDED_BY(mutex_) = 0;
};

// Returns the Event object that a first write creates.
Json to_json(const EventLedger::Write& write, const std::string& component);

}  // namespace muster::kube
