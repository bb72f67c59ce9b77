#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "operator/kube/api/objects.h"
#include "operator/kube/api/resource.h"

namespace muster::kube {

// The object that an Event is about.
struct EventSubject {
  std::string api_version;
  std::string kind;
  std::string name_space;
  std::string name;
  std::string uid;
  auto operator<=>(const EventSubject&) const = default;
};

EventSubject subject_of(const Resource& resource, const std::string& name_space,
                        const std::string& name, const std::string& uid);

struct EventText {
  bool warning = false;
  std::string reason;   // one CamelCase word
  std::string message;  // cut at 1,024 bytes, between characters
};

struct EventLimits {
  size_t waiting = 1'000;             // most kinds of event not yet written; more are dropped
  size_t remembered = 4'000;          // most kinds of event whose count is remembered
  std::chrono::seconds again{10};     // time between two writes of one Event
  double per_second = 5, burst = 25;  // limits of all writes together
};

// Decides which Event objects to write, when and with what count: one object for each (subject,
// reason, message), however often it happens. Has no clock and does no I/O.
class EventLedger {
 public:
  struct Write {
    EventSubject subject;
    EventText text;
    int unwritten = 1;       // how often it happened since the last write of the object
    bool first_time = true;  // first write by this process: the object may not exist yet
    Time first{}, last{};
    // Name of the Event object; the same event has the same name in every process.
    std::string name;
  };

  explicit EventLedger(EventLimits limits = {}) : limits_(limits) {}
  // The result of record(): the event waits to be written, is counted with an equal event that
  // already waits, or is dropped because too many events wait.
  enum class Recorded { waits, counted, dropped };
  Recorded record(const EventSubject& subject, EventText text, Time now);
  // Returns the next write that is due, if the rate allows one now.
  std::optional<Write> take(Time now);
  // Reports that a write from take() did not succeed. take() returns the write again, three times
  // in all.
  void failed(const Write& write, Time now);
  // Returns the earliest time at which take() may return a write; nothing: not before another
  // record().
  std::optional<Time> next() const;

 private:
  struct Entry {
    Write write;
    std::optional<Time> due;  // nothing: the event is written
    Time written{};
    int failures = 0;
  };
  void wait_until(const std::string& key, Entry& entry, Time due);
  void forget_one();
  void refill(Time now);

  const EventLimits limits_;
  std::map<std::string, Entry> entries_;            // by namespace and name of the object
  std::set<std::pair<Time, std::string>> waiting_;  // the entries that have `due`, by its time
  double tokens_ = 0;                               // number of writes allowed now
  std::optional<Time> refilled_;
};

}  // namespace muster::kube
