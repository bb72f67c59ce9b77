#include <algorithm>

#include "tests/unit/trainer/collective/protocol/simulated_job.h"

namespace muster::collective::protocol {

void SimulatedJob::deviate(const Deviation& deviation) {
  const int seat = deviation.argument % static_cast<int>(seats_.size());
  const int rest = deviation.argument / static_cast<int>(seats_.size());
  outcome_.faults += deviation.fault != Fault::pick;
  if (traced_)
    trace_ += std::string("\n  fault ") + static_cast<char>(deviation.fault) +
              std::to_string(deviation.argument);
  switch (deviation.fault) {
    case Fault::pick:
      skip_ = deviation.argument + 1;
      return;
    case Fault::kill:
      return kill(seat, rest);
    case Fault::oust:
      return oust(seat);
    case Fault::pause:
      return pause(seat);
    case Fault::wake:
      return wake(deviation.argument);
    case Fault::fail:
      return storage_.fail_next();
    case Fault::lose:
      published_ = 0;
      return storage_.lose_last_rename();
    case Fault::grow:
      return grow();
    case Fault::shrink:
      return shrink();
    case Fault::quit:
      return quit(deviation.argument);
    case Fault::cut:
    case Fault::hold:
      return disturb_stream(deviation);
  }
}

// `losses`: 0: what it sent last arrives; 1: none of it; 2, 3: every other stream's does not.
void SimulatedJob::kill(int number, int losses) {
  const Seat& seat = seats_[static_cast<size_t>(number)];
  if (seat.current < 0) return;
  network_.drop(seat.current, [&](int nth) {
    return losses % 4 == 1 || (losses % 4 > 1 && nth % 2 == losses % 4 - 2);
  });
  bury(seat.current);
}

void SimulatedJob::oust(int number) {
  Seat& seat = seats_[static_cast<size_t>(number)];
  if (seat.current < 0) return;
  pause(number);
  start(seat);
}

void SimulatedJob::pause(int number) {
  const Seat& seat = seats_[static_cast<size_t>(number)];
  if (seat.current >= 0) paused_[static_cast<size_t>(seat.current)] = true;
}

void SimulatedJob::wake(int argument) {
  std::vector<size_t> stopped;
  for (size_t i = 0; i < processes_.size(); ++i)
    if (processes_[i] && paused_[i]) stopped.push_back(i);
  if (stopped.empty()) return;
  paused_[stopped[static_cast<size_t>(argument) % stopped.size()]] = false;
}

int SimulatedJob::staying() const {
  return static_cast<int>(
      std::ranges::count_if(seats_, [](const Seat& seat) { return !seat.done && !seat.leaving; }));
}

// In a place that nobody has, or whose last process has gone.
void SimulatedJob::grow() {
  if (!setting().elastic() || storage_.final()) return;
  const auto free =
      std::ranges::find_if(seats_, [](const Seat& seat) { return seat.rank > 0 && seat.done; });
  if (free != seats_.end()) {
    free->done = free->leaving = false;
  } else if (static_cast<int>(seats_.size()) < setting().most) {
    seats_.push_back({static_cast<int>(seats_.size())});
  }
}

void SimulatedJob::shrink() {
  if (!setting().elastic() || staying() <= setting().least) return;
  const auto last = std::find_if(seats_.rbegin(), seats_.rend(), [](const Seat& seat) {
    return seat.rank > 0 && !seat.done && !seat.leaving;
  });
  if (last == seats_.rend()) return;
  last->leaving = true;
  if (last->current >= 0)
    process(last->current)->leave();
  else
    last->done = true;
}

void SimulatedJob::quit(int argument) {
  if (!setting().elastic() || staying() <= setting().least) return;
  const int count = static_cast<int>(seats_.size());
  Seat& seat = seats_[static_cast<size_t>(argument % count)];
  if (seat.rank == 0 || seat.done || seat.leaving) return;
  kill(seat.rank, argument / count);
  seat.done = true;
}

void SimulatedJob::disturb_stream(const Deviation& deviation) {
  std::vector<int> fitting;
  for (const auto& [id, stream] : network_.streams())
    if (stream.open[0] && stream.open[1]) fitting.push_back(id);
  if (fitting.empty()) return;
  const int id = fitting[static_cast<size_t>(deviation.argument) % fitting.size()];
  if (deviation.fault == Fault::cut) return network_.cut(id);
  network_.streams().at(id).held = true;
}

void SimulatedJob::calm_down() {
  if (traced_) trace_ += "\n  the faults are over";
  for (auto& [id, stream] : network_.streams()) stream.held = false;
  std::fill(paused_.begin(), paused_.end(), false);
}

}  // namespace muster::collective::protocol
