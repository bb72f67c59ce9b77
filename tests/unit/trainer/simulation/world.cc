#include "tests/unit/trainer/simulation/world.h"

#include <algorithm>
#include <utility>

namespace muster::simulation {

namespace {

constexpr int kPatience = 6000;  // events, once no more faults come

std::string describe(const Message& message) {
  constexpr const char* kKinds[] = {
      "the end",  "a push", "a reply", "a report", "the view",  "Open",      "opened",
      "Snapshot", "copied", "Write",   "written",  "a refusal", "a forward", "an acknowledgement"};
  static_assert(std::size(kKinds) == std::variant_size_v<Message>);
  const std::string kind = kKinds[message.index()];
  if (const auto* push = std::get_if<PushMessage>(&message); push && push->header.pull)
    return "a pull";
  if (const auto* reply = std::get_if<ReplyMessage>(&message); reply && !reply->values.empty())
    return kind + " with values";
  if (const auto* peer = std::get_if<PeerMessage>(&message); peer && peer->has_member())
    return kind + " (" + peer->member().ShortDebugString() + ")";
  if (const auto* group = std::get_if<GroupMessage>(&message))
    return kind + " (" + GroupView::Phase_Name(group->view().phase()) + " " +
           std::to_string(group->view().generation()) + ", plan " +
           std::to_string(group->view().collective().generation()) + ")";
  return kind;
}

}  // namespace

Outcome& Outcome::operator+=(const Outcome& other) {
  events += other.events;
  faults += other.faults;
  restarts += other.restarts;
  generations += other.generations;
  for (const auto& [what, times] : other.told) told[what] += times;
  return *this;
}

World::~World() = default;

Outcome World::run() {
  const int last = deviations_.empty() ? -1 : deviations_.rbegin()->first;
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

bool World::finished() const {
  return std::ranges::all_of(
      seats_, [](const Seat& seat) { return seat.done || seat.place.role == Place::Role::ps; });
}

void World::step(int at) {
  look(at);
  const auto found = deviations_.find(at);
  if (found != deviations_.end()) deviate(found->second);
  const std::vector<Event> all = events();
  if (all.empty()) {
    if (deviations_.lower_bound(at) != deviations_.end() || finished()) return;
    throw Violation("the job is stuck: nobody has anything to do");
  }
  const auto next = std::ranges::upper_bound(all, cursor_);
  const auto index = static_cast<size_t>(next - all.begin()) + static_cast<size_t>(skip_);
  const Event& event = all[index % all.size()];
  // An event that was passed over comes next.
  if (std::exchange(skip_, 0) == 0) cursor_ = event;
  ++outcome_.events;
  happen(event);
  sweep();
}

// Returns the events that can come next, in order.
std::vector<World::Event> World::events() const {
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
  for (const auto& [id, stream] : network_.streams()) {
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

void World::happen(const Event& event) {
  if (traced_) trace_ += "\n  " + std::to_string(outcome_.events) + ": " + describe(event);
  switch (event.kind) {
    case Event::Kind::start:
      return start(seats_[static_cast<size_t>(event.subject)]);
    case Event::Kind::act:
      return process(event.subject)->act(event.detail);
    case Event::Kind::deliver: {
      const auto side = static_cast<Side>(event.detail);
      const int to = network_.streams().at(event.subject).process(side);
      Message message = network_.take(event.subject, side);
      return process(to)->receive(event.subject, side, std::move(message));
    }
  }
}

void World::start(Seat& seat) {
  const int id = static_cast<int>(processes_.size());
  const int attempt = seat.attempts++;
  outcome_.restarts += attempt > 0;
  seat.current = id;
  paused_.push_back(false);
  processes_.push_back(nullptr);
  processes_.back() = make(seat, id, attempt);
  if (processes_.back()) return;
  seat.done = true;
  seat.current = -1;
}

World::Seat* World::seat_of(int process) {
  const auto found = std::ranges::find(seats_, process, &Seat::current);
  return found == seats_.end() ? nullptr : &*found;
}

// Removes a process that has ended; its streams were dropped, or end now.
void World::bury(int process) {
  network_.drop(process, [](int) { return false; });
  processes_[static_cast<size_t>(process)].reset();
  if (Seat* seat = seat_of(process)) seat->current = -1;
}

void World::sweep() {
  for (size_t id = 0; id < processes_.size(); ++id) {
    if (!processes_[id] || !processes_[id]->ended()) continue;
    Seat* seat = seat_of(static_cast<int>(id));
    if (seat && processes_[id]->done()) seat->done = true;
    bury(static_cast<int>(id));
  }
}

int World::process_at(const Place& place) const {
  const auto found = std::ranges::find(seats_, place, &Seat::place);
  return found == seats_.end() ? -1 : found->current;
}

bool World::is_stopped(int id) const {
  return process(id) && paused_[static_cast<size_t>(id)];
}

bool World::is_silent(int id) const {
  if (!is_stopped(id)) return false;
  const int now = process_at(process(id)->place());
  return now >= 0 && now != id;
}

void World::opened(uint64_t generation) {
  ++outcome_.generations;
  storage_.opened(generation);
}

void World::tell(int id, const char* what, uint64_t number) {
  ++outcome_.told[what];
  if (traced_)
    trace_ += "\n      " + process(id)->name() + " " + what + " " + std::to_string(number);
}

std::string World::describe(const Event& event) const {
  const auto name = [&](int id) {
    return id < 0 ? "nobody" : process(id) ? process(id)->name() : "one that has gone";
  };
  if (event.kind == Event::Kind::start)
    return seats_[static_cast<size_t>(event.subject)].place.text() + " starts";
  if (event.kind == Event::Kind::act)
    return name(event.subject) + " acts (thread " + std::to_string(event.detail) + ")";
  const auto& stream = network_.streams().at(event.subject);
  const int to = event.detail;
  return name(stream.ends[to]) + " gets " + simulation::describe(stream.inbox[to].front()) +
         " from " + name(stream.ends[1 - to]) + " (stream " + std::to_string(event.subject) + ")";
}

void World::deviate(const Deviation& deviation) {
  const auto count = static_cast<int>(seats_.size());
  Seat& seat = seats_[static_cast<size_t>(deviation.argument % count)];
  outcome_.faults += deviation.fault != Fault::pick;
  if (traced_)
    trace_ += std::string("\n  fault ") + static_cast<char>(deviation.fault) +
              std::to_string(deviation.argument);
  switch (deviation.fault) {
    case Fault::pick:
      skip_ = deviation.argument + 1;
      return;
    case Fault::kill:
      return kill(seat, deviation.argument / count);
    case Fault::oust:
      if (seat.current < 0) return;
      lossy_ = true;
      pause(seat);
      return start(seat);
    case Fault::pause:
      return pause(seat);
    case Fault::wake:
      return wake(deviation.argument);
    case Fault::fail:
      return storage_.fail_next();
    case Fault::lose:
      return storage_.lose_last_rename();
    case Fault::cut:
    case Fault::repeat:
    case Fault::hold:
    case Fault::expire:
      return disturb_stream(deviation);
    case Fault::grow:
    case Fault::shrink:
    case Fault::quit:
    case Fault::part:
      return disturb(deviation);
  }
}

void World::kill(const Seat& seat, int losses) {
  if (seat.current < 0) return;
  lossy_ = true;
  network_.drop(seat.current, [&](int nth) {
    return losses % 4 == 1 || (losses % 4 > 1 && nth % 2 == losses % 4 - 2);
  });
  bury(seat.current);
}

void World::pause(const Seat& seat) {
  if (seat.current >= 0) paused_[static_cast<size_t>(seat.current)] = true;
}

void World::stop_for_good(const Seat& seat) {
  pause(seat);
  stopped_for_good_.insert(seat.current);
}

void World::wake(int argument) {
  std::vector<int> stopped;
  for (int id = 0; id < static_cast<int>(processes_.size()); ++id)
    if (is_stopped(id) && !stopped_for_good_.contains(id)) stopped.push_back(id);
  if (stopped.empty()) return;
  const int woken = stopped[static_cast<size_t>(argument) % stopped.size()];
  paused_[static_cast<size_t>(woken)] = false;
}

void World::disturb_stream(const Deviation& deviation) {
  std::vector<std::pair<int, Side>> fitting;
  for (auto& [id, stream] : network_.streams())
    for (const Side side : {Side::client, Side::server}) {
      const bool something =
          !stream.to(side).empty() && !std::holds_alternative<End>(stream.to(side).front());
      const bool open = stream.open[0] && stream.open[1];
      const bool fits = deviation.fault == Fault::repeat ? something
                        : deviation.fault == Fault::expire
                            ? stream.call && side == Side::client && stream.is_open(Side::client)
                            : open && side == Side::client;
      if (fits) fitting.emplace_back(id, side);
    }
  if (fitting.empty()) return;
  const auto [id, side] = fitting[static_cast<size_t>(deviation.argument) % fitting.size()];
  SimulatedNetwork::Stream& stream = network_.streams().at(id);
  if (deviation.fault == Fault::repeat) {
    stream.to(side).push_front(Message(stream.to(side).front()));
    return;
  }
  if (deviation.fault == Fault::hold) {
    stream.held = true;
    return;
  }
  lossy_ = true;
  if (deviation.fault == Fault::cut) return network_.cut(id);
  const int client = stream.process(Side::client);
  network_.close(id, Side::client);
  process(client)->receive(id, Side::client, End());
}

void World::calm_down() {
  if (traced_) trace_ += "\n  the faults are over";
  for (auto& [id, stream] : network_.streams()) stream.held = false;
  for (size_t i = 0; i < paused_.size(); ++i)
    paused_[i] = stopped_for_good_.contains(static_cast<int>(i));
}

}  // namespace muster::simulation
