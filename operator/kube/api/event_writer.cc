#include "operator/kube/api/event_writer.h"

#include "common/documents/json.h"
#include "common/program/log.h"
#include "operator/api/status.h"

namespace muster::kube {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience(5'000);      // time limit of a write
constexpr milliseconds kLastPatience(2'000);  // time limit of all writes after a stop

Json counted(int count, Time last) {
  return {{"count", count}, {"lastTimestamp", api::format_time(last)}};
}

}  // namespace

Json to_json(const EventLedger::Write& write, const std::string& component) {
  const EventSubject& subject = write.subject;
  Json object = {{"apiVersion", events().api_version()},
                 {"kind", events().kind},
                 {"metadata", {{"name", write.name}, {"namespace", subject.name_space}}},
                 {"involvedObject",
                  {{"apiVersion", subject.api_version},
                   {"kind", subject.kind},
                   {"namespace", subject.name_space},
                   {"name", subject.name},
                   {"uid", subject.uid}}},
                 {"type", write.text.warning ? "Warning" : "Normal"},
                 {"reason", write.text.reason},
                 {"message", write.text.message},
                 {"source", {{"component", component}}},
                 {"reportingComponent", component},
                 {"firstTimestamp", api::format_time(write.first)}};
  object.update(counted(write.unwritten, write.last));
  return object;
}

EventWriter::EventWriter(Transport& transport, std::string component, EventLimits limits)
    : client_(transport, Client::Settings{kPatience}),
      component_(std::move(component)),
      ledger_(limits) {}

void EventWriter::emit(const EventSubject& subject, const EventText& text) {
  using Recorded = EventLedger::Recorded;
  Recorded recorded{};
  {
    const MutexLock lock(mutex_);
    recorded = ledger_.record(subject, text, api::wall_time());
    if (recorded == Recorded::dropped) ++dropped_;
    changed_.notify_all();
  }
  if (recorded == Recorded::counted) return;
  const std::string job = subject.name_space + "/" + subject.name;
  log::info(job + ": " + text.reason + ": " + text.message,
            {{"job", job}, {"reason", text.reason}});
}

uint64_t EventWriter::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

std::optional<EventLedger::Write> EventWriter::take() {
  const MutexLock lock(mutex_);
  return ledger_.take(api::wall_time());
}

void EventWriter::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (const std::optional<EventLedger::Write> write = take()) {
      try_to_write(*write);
      continue;
    }
    MutexLock lock(mutex_);
    const std::optional<Time> next = ledger_.next();
    // Any emit() wakes this thread, because its Event may be due earlier.
    const auto earlier = [&]() MUSTER_REQUIRES(mutex_) { return ledger_.next() != next; };
    if (next) {
      changed_.wait_until(lock, stop, *next, earlier);
    } else {
      changed_.wait(lock, stop, earlier);
    }
  }
  flush();
}

void EventWriter::flush() {
  const Time until = api::wall_time() + kLastPatience;
  while (api::wall_time() < until) {
    const std::optional<EventLedger::Write> write = take();
    if (!write) return;
    try_to_write(*write);
  }
}

void EventWriter::try_to_write(const EventLedger::Write& write) {
  try {
    return this->write(write);
  } catch (const Unavailable& error) {
    log::debug(std::string("event: ") + error.what());
    const MutexLock lock(mutex_);
    ledger_.failed(write, api::wall_time());
  } catch (const Invalid& error) {
    log::warning(std::string("event: ") + error.what());
  }
}

// Usually the object does not exist yet. Otherwise (the event happened again, or an earlier process
// wrote it) its count is raised.
void EventWriter::write(const EventLedger::Write& write) const {
  const ObjectName name{write.subject.name_space, write.name};
  if (write.first_time) {
    try {
      client_.create(events(), to_json(write, component_));
      return;
    } catch (const ApiUnavailable& error) {
      if (!error.status().already_exists()) throw;
    }
  }
  if (const std::optional<Json> there = client_.get(events(), name)) {
    const auto count = static_cast<int>(integer_or(*there, "count", 0)) + write.unwritten;
    client_.patch(events(), name, PatchKind::merge, counted(count, write.last));
  } else {
    client_.create(events(), to_json(write, component_));  // the server has deleted the old Event
  }
}

}  // namespace muster::kube
