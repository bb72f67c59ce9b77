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
  size_t waiting = 1'000;             // kinds of event not yet written; more are dropped
  size_t remembered = 4'000;          // kinds of event whose count is known
  std::chrono::seconds again{10};     // between two writes of one Event
  double per_second = 5, burst = 25;  // writes, all together
};

// Decides which Event objects to write, when and with what count: one object for each (subject,
// reason, message), however often it happens. Has no clock and does no I/O.
class EventLedger {
 public:
  struct Write {
    EventSubject subject;
    EventText text;
    int unwritten = 1;       // times it happened that are not in the object yet
    bool first_time = true;  // in this process: there may be no object yet
    Time first{}, last{};
    std::string name;  // of the Event object: the same for the same thing in every process
  };

  explicit EventLedger(EventLimits limits = {}) : limits_(limits) {}
  // The result of record(): the event waits to be written; or it is counted with one that waits
  // already; or it is dropped, since too many wait.
  enum class Recorded { waits, counted, dropped };
  Recorded record(const EventSubject& subject, EventText text, Time now);
  // Returns the next write that is due, if the rate allows one now.
  std::optional<Write> take(Time now);
  // Reports that a write from take() did not succeed: it comes again, three times in all.
  void failed(const Write& write, Time now);
  // Returns when take() may return a write; nothing: not before another record().
  std::optional<Time> next() const;

 private:
  struct Entry {
    Write write;
    std::optional<Time> due;  // nothing: written
    Time written{};
    int failures = 0;
  };
  void wait_until(const std::string& key, Entry& entry, Time due);
  void forget_one();
  void refill(Time now);

  const EventLimits limits_;
  std::map<std::string, Entry> entries_;            // by name of the object, with its namespace
  std::set<std::pair<Time, std::string>> waiting_;  // when each that has a `due` is, by it
  double tokens_ = 0;                               // writes allowed now
  std::optional<Time> refilled_;
};

}  // namespace muster::kube
