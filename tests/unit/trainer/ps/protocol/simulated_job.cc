#include "tests/unit/trainer/ps/protocol/simulated_job.h"

#include <algorithm>

#include "common/error.h"
#include "tests/unit/trainer/ps/protocol/chief_process.h"
#include "tests/unit/trainer/ps/protocol/shard_process.h"
#include "tests/unit/trainer/ps/protocol/worker_process.h"

namespace muster::ps::protocol {

namespace {
constexpr int kPatience = 6000;  // events, once no more faults come
using Side = SimulatedNetwork::Side;
}  // namespace

Outcome& Outcome::operator+=(const Outcome& other) {
  events += other.events;
  faults += other.faults;
  restarts += other.restarts;
  generations += other.generations;
  checkpoints += other.checkpoints;
  left_out += other.left_out;
  held_back += other.held_back;
  parted += other.parted;
  loads += other.loads;
  return *this;
}

SimulatedJob::SimulatedJob(const Schedule& schedule, bool traced)
    : schedule_(schedule),
      traced_(traced),
      books_(schedule.setting),
      storage_(schedule.setting.shards) {
  for (int i = 0; i < setting().shards; ++i) seats_.push_back({{Place::Role::ps, i}});
  seats_.push_back({{Place::Role::chief, 0}});
  for (int i = 0; i + 1 < setting().members; ++i) seats_.push_back({{Place::Role::worker, i}});
}

Outcome SimulatedJob::run() {
  const auto& deviations = schedule_.deviations;
  const int last = deviations.empty() ? -1 : deviations.rbegin()->first;
  try {
    for (int at = 0; !finished(); ++at) {
      if (at > last + kPatience) throw Violation("the job makes no progress");
      if (at == last + 1) calm_down();
      step(at);
    }
    check_end();
  } catch (const Violation& violation) {
    throw Violation(violation.what() + trace_);
  } catch (const std::exception& error) {
    throw Violation(std::string("an error that nobody expects: ") + error.what() + trace_);
  }
  return outcome_;
}

bool SimulatedJob::finished() const {
  return std::all_of(seats_.begin(), seats_.end(), [](const Seat& seat) {
    return seat.done || seat.place.role == Place::Role::ps;
  });
}

void SimulatedJob::step(int at) {
  if (outcome_.covered_at == 0 && covered()) outcome_.covered_at = at;
  const auto found = schedule_.deviations.find(at);
  if (found != schedule_.deviations.end()) deviate(found->second);
  const std::vector<Event> all = events();
  if (all.empty()) {
    if (schedule_.deviations.lower_bound(at) != schedule_.deviations.end()) return;
    throw Violation("the job is stuck: nobody has anything to do");
  }
  const auto next = std::find_if(all.begin(), all.end(),
                                 [&](const Event& event) { return event.key() > cursor_; });
  const auto index = static_cast<size_t>(next - all.begin()) + static_cast<size_t>(skip_);
  const Event& event = all[index % all.size()];
  // An event that was passed over comes next.
  if (std::exchange(skip_, 0) == 0) cursor_ = event.key();
  ++outcome_.events;
  happen(event);
  sweep();
}

std::vector<SimulatedJob::Event> SimulatedJob::events() const {
  std::vector<Event> all;
  for (size_t i = 0; i < seats_.size(); ++i)
    if (seats_[i].current < 0 && !seats_[i].done)
      all.push_back({Event::Kind::start, static_cast<int>(i), 0});
  for (size_t id = 0; id < processes_.size(); ++id) {
    if (!processes_[id] || paused_[id]) continue;
    for (int thread = 0; thread < processes_[id]->threads(); ++thread)
      if (processes_[id]->ready(thread))
        all.push_back({Event::Kind::act, static_cast<int>(id), thread});
  }
  for (const auto& [id, stream] : const_cast<SimulatedNetwork&>(network_).streams()) {
    if (stream.held) continue;
    for (const Side side : {Side::client, Side::server}) {
      const int process = stream.process(side);
      if (stream.inbox[static_cast<int>(side)].empty() || paused_[static_cast<size_t>(process)])
        continue;
      all.push_back({Event::Kind::deliver, id, static_cast<int>(side)});
    }
  }
  return all;
}

void SimulatedJob::happen(const Event& event) {
  if (traced_) trace_ += "\n  " + std::to_string(outcome_.events) + ": " + describe(event);
  switch (event.kind) {
    case Event::Kind::start:
      return start(seats_[static_cast<size_t>(event.subject)]);
    case Event::Kind::act:
      return processes_[static_cast<size_t>(event.subject)]->act(event.detail);
    case Event::Kind::deliver: {
      const auto side = static_cast<Side>(event.detail);
      const int process = network_.streams().at(event.subject).process(side);
      Message message = network_.take(event.subject, side);
      return processes_[static_cast<size_t>(process)]->receive(event.subject, std::move(message));
    }
  }
}

void SimulatedJob::start(Seat& seat) {
  const int id = static_cast<int>(processes_.size());
  const int attempt = seat.attempts++;
  outcome_.restarts += attempt > 0;
  seat.current = id;
  paused_.push_back(false);
  processes_.push_back(nullptr);
  const auto make = [&]() -> std::unique_ptr<Process> {
    if (seat.place.role == Place::Role::ps)
      return std::make_unique<ShardProcess>(*this, id, seat.place, attempt);
    if (seat.place.role == Place::Role::chief)
      return std::make_unique<ChiefProcess>(*this, id, seat.place, attempt);
    return std::make_unique<WorkerProcess>(*this, id, seat.place, attempt);
  };
  processes_.back() = make();
}

SimulatedJob::Seat* SimulatedJob::seat_of(int process) {
  for (Seat& seat : seats_)
    if (seat.current == process) return &seat;
  return nullptr;
}

// Removes a process that has ended; its streams were dropped, or end now.
void SimulatedJob::bury(int process) {
  processes_[static_cast<size_t>(process)].reset();
  network_.drop(process, [](int) { return false; });
  if (Seat* seat = seat_of(process)) seat->current = -1;
}

void SimulatedJob::sweep() {
  for (size_t id = 0; id < processes_.size(); ++id) {
    if (!processes_[id] || !processes_[id]->ended()) continue;
    Seat* seat = seat_of(static_cast<int>(id));
    if (seat && processes_[id]->done()) seat->done = true;
    bury(static_cast<int>(id));
  }
}

int SimulatedJob::process_at(const Place& place) const {
  for (const Seat& seat : seats_)
    if (seat.place == place) return seat.current;
  return -1;
}

bool SimulatedJob::is_silent(int process) const {
  const auto& one = processes_[static_cast<size_t>(process)];
  return one && paused_[static_cast<size_t>(process)] && process_at(one->place()) != process &&
         process_at(one->place()) >= 0;
}

bool SimulatedJob::covered() const {
  if (setting().copies == 1) return false;
  for (int shard = 0; shard < setting().shards; ++shard) {
    uint64_t serving = 0;
    uint64_t whole = 0;
    for (const Seat& seat : seats_) {
      if (seat.place.role != Place::Role::ps || seat.current < 0) continue;
      const auto& process = processes_[static_cast<size_t>(seat.current)];
      const HostedShard* hosted = dynamic_cast<const ShardProcess&>(*process).hosted(shard);
      if (!hosted) continue;
      const ShardState state = hosted->state();
      if (state.serving()) serving = std::max(serving, state.generation());
      if (state.whole()) whole = std::max(whole, state.generation());
    }
    if (whole == 0 || whole != serving) return false;
  }
  return true;
}

void SimulatedJob::check_end() const {
  const SimulatedStorage::Folder* final = storage_.final();
  if (!final) throw Violation("the job ended without a final checkpoint");
  books_.check_folder(*final);
  if (setting().sync && final->position.step != books_.total())
    throw Violation("the job ended at step " + std::to_string(final->position.step));
  // The next generation hands out again the tickets that only shard 0 is known to have.
  const bool certain = setting().shards == 1 || outcome_.generations == 1;
  books_.check_applied(*final, !lossy_ && certain);
}

void SimulatedJob::tell(int process, const char* what, uint64_t number) {
  if (std::string_view(what).starts_with("published")) ++outcome_.checkpoints;
  outcome_.loads += std::string_view(what).starts_with("loads");
  outcome_.left_out += std::string_view(what).starts_with("left somebody");
  outcome_.held_back += std::string_view(what).starts_with("held somebody");
  outcome_.parted += std::string_view(what).starts_with("lost its standby");
  if (std::string_view(what).starts_with("opened the")) {
    ++outcome_.generations;
    storage_.opened(number);
  }
  if (!traced_) return;
  trace_ += "\n      " + processes_[static_cast<size_t>(process)]->name() + " " + what + " " +
            std::to_string(number);
}

std::string SimulatedJob::describe(const Event& event) const {
  const auto name = [&](int process) {
    const auto& one = processes_[static_cast<size_t>(process)];
    return one ? one->name() : "one that has gone";
  };
  if (event.kind == Event::Kind::start)
    return seats_[static_cast<size_t>(event.subject)].place.text() + " starts";
  if (event.kind == Event::Kind::act)
    return name(event.subject) + " acts (thread " + std::to_string(event.detail) + ")";
  const auto& stream = const_cast<SimulatedNetwork&>(network_).streams().at(event.subject);
  const int to = event.detail;
  const char* kinds[] = {
      "the end",  "a push", "a reply", "a report", "the view",  "Open",      "opened",
      "Snapshot", "copied", "Write",   "written",  "a refusal", "a forward", "an acknowledgement"};
  return name(stream.ends[to]) + " gets " + kinds[stream.inbox[to].front().index()] + " from " +
         (stream.ends[1 - to] < 0 ? "nobody" : name(stream.ends[1 - to])) + " (stream " +
         std::to_string(event.subject) + ")";
}

}  // namespace muster::ps::protocol
