#include "tests/unit/trainer/ps/protocol/simulated_job.h"

#include <algorithm>

#include "tests/unit/trainer/ps/protocol/chief_process.h"
#include "tests/unit/trainer/ps/protocol/shard_process.h"
#include "tests/unit/trainer/ps/protocol/worker_process.h"

namespace muster::ps::protocol {

SimulatedJob::SimulatedJob(const Schedule<Setting>& schedule, bool traced)
    : World(schedule.setting.shards, schedule.deviations, traced),
      setting_(schedule.setting),
      books_(setting_) {
  for (int i = 0; i < setting_.shards; ++i) seats_.push_back({{Place::Role::ps, i}});
  for (int rank = 0; rank < setting_.members; ++rank) seats_.push_back({Place::of_rank(rank)});
}

std::unique_ptr<Process> SimulatedJob::make(const Seat& seat, int id, int attempt) {
  if (seat.place.role == Place::Role::ps)
    return std::make_unique<ShardProcess>(*this, id, seat.place, attempt);
  if (seat.place.role == Place::Role::chief)
    return std::make_unique<ChiefProcess>(*this, id, seat.place, attempt);
  return std::make_unique<WorkerProcess>(*this, id, seat.place, attempt);
}

void SimulatedJob::look(int event) {
  if (covered_at_ == 0 && covered()) covered_at_ = event;
}

void SimulatedJob::disturb(const Deviation& deviation) {
  if (deviation.fault == Fault::quit) return quit(deviation.argument);
  part(deviation.argument % setting_.shards,
       deviation.argument / setting_.shards % setting_.copies);
}

// Ends one of the workers for good; at most as many may end as there are backups.
void SimulatedJob::quit(int argument) {
  const int workers = setting_.members - 1;
  const auto first = seats_.end() - workers;
  const auto missing =
      std::count_if(first, seats_.end(), [](const Seat& seat) { return seat.done; });
  if (missing >= setting_.backups) return;
  Seat& seat = *(first + argument % workers);
  if (seat.done) return;
  seat.done = true;
  if (seat.current < 0) return;
  const int how = argument / workers % 5;
  if (how < 4) return kill(seat, how);
  stop_for_good(seat);
}

void SimulatedJob::part(int ps, int copy) {
  const int id = process_at({Place::Role::ps, ps});
  if (id < 0 || is_stopped(id)) return;
  dynamic_cast<ShardProcess&>(*process(id)).lose_standby(copy);
}

bool SimulatedJob::covered() const {
  if (setting_.copies == 1) return false;
  for (int shard = 0; shard < setting_.shards; ++shard) {
    uint64_t serving = 0;
    uint64_t whole = 0;
    for (const Seat& seat : seats_) {
      if (seat.place.role != Place::Role::ps || seat.current < 0) continue;
      const auto& ps = dynamic_cast<const ShardProcess&>(*process(seat.current));
      const ReplicatedShard* hosted = ps.hosted(shard);
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
  const SimulatedStorage::Folder* final = storage().final();
  if (!final) throw Violation("the job ended without a final checkpoint");
  books_.check_folder(*final);
  if (setting_.sync && final->position.step != books_.total())
    throw Violation("the job ended at step " + std::to_string(final->position.step));
  // The next generation hands out again the tickets that only shard 0 is known to have.
  const bool certain = setting_.shards == 1 || outcome_.generations == 1;
  books_.check_applied(*final, !lossy() && certain);
}

}  // namespace muster::ps::protocol
