#include <algorithm>

#include "tests/unit/trainer/ps/protocol/shard_process.h"
#include "tests/unit/trainer/ps/protocol/simulated_job.h"

namespace muster::ps::protocol {

using Side = SimulatedNetwork::Side;

void SimulatedJob::deviate(const Deviation& deviation) {
  const auto pick_seat = [&] { return deviation.argument % static_cast<int>(seats_.size()); };
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
      return kill(pick_seat(), rest);
    case Fault::oust:
      return oust(pick_seat());
    case Fault::pause:
      if (const int process = seats_[static_cast<size_t>(pick_seat())].current; process >= 0)
        paused_[static_cast<size_t>(process)] = true;
      return;
    case Fault::wake: {
      std::vector<size_t> stopped;
      for (size_t i = 0; i < processes_.size(); ++i)
        if (processes_[i] && paused_[i] && !stopped_for_good_.contains(static_cast<int>(i)))
          stopped.push_back(i);
      if (!stopped.empty())
        paused_[stopped[static_cast<size_t>(deviation.argument) % stopped.size()]] = false;
      return;
    }
    case Fault::fail:
      return storage_.fail_next();
    case Fault::lose:
      return storage_.lose_last_rename();
    case Fault::quit:
      return quit(deviation.argument);
    case Fault::part:
      return part(deviation.argument % setting().shards,
                  deviation.argument / setting().shards % setting().copies);
    default:
      return disturb_stream(deviation);
  }
}

// `losses` says what becomes of its last messages: 0: all arrive; 1: none; 2, 3: those of every
// other stream are lost.
void SimulatedJob::kill(int number, int losses) {
  const Seat& seat = seats_[static_cast<size_t>(number)];
  if (seat.current < 0) return;
  lossy_ = true;
  network_.drop(seat.current, [&](int nth) {
    switch (losses % 4) {
      case 0:
        return false;
      case 1:
        return true;
      default:
        return nth % 2 == losses % 4 - 2;
    }
  });
  bury(seat.current);
}

void SimulatedJob::oust(int number) {
  Seat& seat = seats_[static_cast<size_t>(number)];
  if (seat.current < 0) return;
  lossy_ = true;
  paused_[static_cast<size_t>(seat.current)] = true;
  start(seat);
}

// Ends one of the workers for good; at most as many may end as there are backups.
void SimulatedJob::quit(int argument) {
  const int workers = setting().members - 1;
  const auto first = seats_.end() - workers;
  const auto missing =
      std::count_if(first, seats_.end(), [](const Seat& seat) { return seat.done; });
  if (missing >= setting().backups) return;
  Seat& seat = *(first + argument % workers);
  if (seat.done) return;
  seat.done = true;
  if (seat.current < 0) return;
  const int how = argument / workers % 5;
  if (how < 4) return kill(static_cast<int>(&seat - seats_.data()), how);
  paused_[static_cast<size_t>(seat.current)] = true;
  stopped_for_good_.insert(seat.current);
}

void SimulatedJob::part(int ps, int copy) {
  const int process = process_at({Place::Role::ps, ps});
  if (process < 0 || paused_[static_cast<size_t>(process)]) return;
  dynamic_cast<ShardProcess&>(*processes_[static_cast<size_t>(process)]).lose_standby(copy);
}

void SimulatedJob::disturb_stream(const Deviation& deviation) {
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
  processes_[static_cast<size_t>(client)]->receive(id, End());
}

void SimulatedJob::calm_down() {
  if (traced_) trace_ += "\n  the faults are over";
  for (auto& [id, stream] : network_.streams()) stream.held = false;
  for (size_t i = 0; i < paused_.size(); ++i)
    paused_[i] = stopped_for_good_.contains(static_cast<int>(i));
}

}  // namespace muster::ps::protocol
