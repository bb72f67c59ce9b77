#include "tests/unit/trainer/collective/protocol/simulated_job.h"

#include <algorithm>

#include "tests/unit/trainer/collective/protocol/chief_process.h"
#include "tests/unit/trainer/collective/protocol/worker_process.h"

namespace muster::collective::protocol {

namespace {
constexpr int kPatience = 6000;  // events, once no more faults come
}  // namespace

Outcome& Outcome::operator+=(const Outcome& other) {
  events += other.events;
  faults += other.faults;
  restarts += other.restarts;
  generations += other.generations;
  checkpoints += other.checkpoints;
  kept += other.kept;
  restored += other.restored;
  begun += other.begun;
  shared += other.shared;
  resized += other.resized;
  return *this;
}

SimulatedJob::SimulatedJob(const Schedule& schedule, bool traced)
    : schedule_(schedule), traced_(traced), books_(schedule.setting), storage_(/*shards=*/1) {
  for (int rank = 0; rank < setting().members; ++rank) seats_.push_back({rank});
}

// Processes close their streams when they go.
SimulatedJob::~SimulatedJob() {
  processes_.clear();
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
  return std::ranges::all_of(seats_, [](const Seat& seat) { return seat.done; });
}

void SimulatedJob::step(int at) {
  const auto found = schedule_.deviations.find(at);
  if (found != schedule_.deviations.end()) deviate(found->second);
  const std::vector<Event> all = events();
  if (all.empty()) {
    if (schedule_.deviations.lower_bound(at) != schedule_.deviations.end() || finished()) return;
    throw Violation("the job is stuck: nobody has anything to do");
  }
  const auto next =
      std::ranges::find_if(all, [&](const Event& event) { return event.key() > cursor_; });
  const auto index = static_cast<size_t>(next - all.begin()) + static_cast<size_t>(skip_);
  const Event& event = all[index % all.size()];
  // What was passed over comes next.
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
      return process(event.subject)->act(event.detail);
    case Event::Kind::deliver: {
      const auto side = static_cast<Side>(event.detail);
      const int to = network_.streams().at(event.subject).process(side);
      Message message = network_.take(event.subject, side);
      return process(to)->receive(event.subject, side, std::move(message));
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
  // Training was finished before.
  if (storage_.final()) {
    seat.done = true;
    seat.current = -1;
    return;
  }
  if (seat.rank == 0)
    processes_.back() = std::make_unique<ChiefProcess>(*this, id, seat.rank, attempt);
  else
    processes_.back() = std::make_unique<WorkerProcess>(*this, id, seat.rank, attempt);
  if (seat.leaving) processes_.back()->leave();
}

SimulatedJob::Seat* SimulatedJob::seat_of(int process) {
  for (Seat& seat : seats_)
    if (seat.current == process) return &seat;
  return nullptr;
}

// The streams of what has ended were dropped, or end now.
void SimulatedJob::bury(int process) {
  network_.drop(process, [](int) { return false; });
  processes_[static_cast<size_t>(process)].reset();
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

int SimulatedJob::process_at(int rank) const {
  for (const Seat& seat : seats_)
    if (seat.rank == rank && !seat.done) return seat.current;
  return -1;
}

bool SimulatedJob::is_running(int id) const {
  return process(id) != nullptr;
}

bool SimulatedJob::is_stopped(int id) const {
  return process(id) && paused_[static_cast<size_t>(id)];
}

bool SimulatedJob::is_silent(int id) const {
  if (!is_stopped(id)) return false;
  const int now = process_at(process(id)->rank());
  return now >= 0 && now != id;
}

bool SimulatedJob::all_attend(int chief) const {
  return std::ranges::all_of(seats_, [&](const Seat& seat) {
    return seat.done || (seat.current >= 0 &&
                         (is_stopped(seat.current) || process(seat.current)->attends(chief)));
  });
}

// Nothing that any of its members holds is given up, but for what came later.
void SimulatedJob::opened(const CollectivePlan& plan) {
  if (setting().elastic() ? plan.members_size() < setting().least
                          : plan.members_size() != setting().members)
    throw Violation("a generation of " + std::to_string(plan.members_size()) + " members runs");
  std::pair<uint64_t, uint64_t> best{};
  for (const MemberPlace& place : plan.members()) {
    const Process* const member = process(static_cast<int>(place.incarnation()) - 1);
    if (member) best = std::max(best, member->held());
  }
  if (plan.generation() <= newest_) return;  // by a rank 0 that was taken for lost: nobody comes
  if (setting().hosts == Setting::Hosts::one && !plan.shared_memory())
    throw Violation("generation " + std::to_string(plan.generation()) +
                    " runs by TCP, though its members share a host");
  newest_ = plan.generation();
  const uint64_t step = plan.position().step();
  uint64_t checkpoint = 0;
  if (plan.content() == CollectivePlan::RESTORE)
    checkpoint = checkpoint::FolderName::parse(plan.checkpoint())->generation;
  const bool keeps = plan.content() == CollectivePlan::KEEP;
  if (step < best.second && (keeps || checkpoint <= best.first))
    throw Violation("generation " + std::to_string(plan.generation()) + " begins at step " +
                    std::to_string(step) + (keeps ? "" : " with no member's state") +
                    ", though a member holds step " + std::to_string(best.second) +
                    " of generation " + std::to_string(best.first));
  if (keeps && best.first > 0 && published_ > best.first)
    throw Violation("generation " + std::to_string(plan.generation()) +
                    " begins with what is left of generation " + std::to_string(best.first) +
                    ", though there is a checkpoint of generation " + std::to_string(published_));
  outcome_.kept += keeps;
  outcome_.restored += plan.content() == CollectivePlan::RESTORE;
  outcome_.begun += plan.content() == CollectivePlan::INITIALIZE;
  outcome_.shared += plan.shared_memory();
  outcome_.resized += members_ > 0 && members_ != plan.members_size();
  members_ = plan.members_size();
  ++outcome_.generations;
  storage_.opened(plan.generation());
}

void SimulatedJob::published(uint64_t generation) {
  ++outcome_.checkpoints;
  published_ = std::max(published_, generation);
}

void SimulatedJob::check_end() const {
  const SimulatedStorage::Folder* final = storage_.final();
  if (!final) throw Violation("the job ended without a final checkpoint");
  books_.check_final(*final);
}

void SimulatedJob::tell(int id, const char* what, uint64_t number) {
  if (!traced_) return;
  trace_ += "\n      " + process(id)->name() + " " + what + " " + std::to_string(number);
}

std::string SimulatedJob::describe(const Event& event) const {
  const auto name = [&](int id) {
    return id < 0 ? "nobody" : process(id) ? process(id)->name() : "one that has gone";
  };
  if (event.kind == Event::Kind::start)
    return "rank " + std::to_string(seats_[static_cast<size_t>(event.subject)].rank) + " starts";
  if (event.kind == Event::Kind::act)
    return name(event.subject) + " acts (thread " + std::to_string(event.detail) + ")";
  const auto& stream = const_cast<SimulatedNetwork&>(network_).streams().at(event.subject);
  const int to = event.detail;
  const Message& message = stream.inbox[to].front();
  std::string what = "the end";
  if (const auto* peer = std::get_if<PeerMessage>(&message))
    what = "a report (" + peer->member().ShortDebugString() + ")";
  if (const auto* group = std::get_if<GroupMessage>(&message))
    what = "the view (" + GroupView::Phase_Name(group->view().phase()) + " " +
           std::to_string(group->view().generation()) + ", plan " +
           std::to_string(group->view().collective().generation()) + ")";
  if (const auto* push = std::get_if<ps::protocol::PushMessage>(&message))
    what = push->header.pull ? "a greeting" : "a contribution";
  if (const auto* reply = std::get_if<ps::protocol::ReplyMessage>(&message))
    what = reply->values.empty() ? "a sum" : "the state";
  return name(stream.ends[to]) + " gets " + what + " from " + name(stream.ends[1 - to]) +
         " (stream " + std::to_string(event.subject) + ")";
}

}  // namespace muster::collective::protocol
