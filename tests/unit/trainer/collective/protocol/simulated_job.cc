#include "tests/unit/trainer/collective/protocol/simulated_job.h"

#include <algorithm>

#include "tests/unit/trainer/collective/protocol/chief_process.h"
#include "tests/unit/trainer/collective/protocol/worker_process.h"

namespace muster::collective::protocol {

SimulatedJob::SimulatedJob(const Schedule<Setting>& schedule, bool traced)
    : World(/*shards=*/1, schedule.deviations, traced),
      setting_(schedule.setting),
      books_(setting_) {
  for (int rank = 0; rank < setting_.members; ++rank) seats_.push_back({Place::of_rank(rank)});
}

std::unique_ptr<Process> SimulatedJob::make(const Seat& seat, int id, int attempt) {
  if (storage().final()) return nullptr;
  const auto keep = [&](auto process) -> std::unique_ptr<Process> {
    members_[id] = &process->member();
    if (seat.leaving) process->member().leave();
    return process;
  };
  if (seat.place == kChief)
    return keep(std::make_unique<ChiefProcess>(*this, id, seat.place, attempt));
  return keep(std::make_unique<WorkerProcess>(*this, id, seat.place, attempt));
}

std::string SimulatedJob::host_of(const Place& place) const {
  return setting_.hosts == Setting::Hosts::two && place.rank() % 2 == 1 ? "second" : "first";
}

bool SimulatedJob::all_attend(int chief) const {
  return std::ranges::all_of(seats_, [&](const Seat& seat) {
    return seat.done || (seat.current >= 0 && (seat.place == kChief || is_stopped(seat.current) ||
                                               member(seat.current)->client().attends(chief)));
  });
}

// Nothing that any of its members holds is given up, but for what came later.
void SimulatedJob::opened(const CollectivePlan& plan) {
  if (setting_.elastic() ? plan.members_size() < setting_.least
                         : plan.members_size() != setting_.members)
    throw Violation("a generation of " + std::to_string(plan.members_size()) + " members runs");
  std::pair<uint64_t, uint64_t> best{};
  for (const MemberPlace& place : plan.members()) {
    if (const Member* const one = member(static_cast<int>(place.incarnation()) - 1))
      best = std::max(best, {one->generation(), one->position().step});
  }
  if (plan.generation() <= newest_) return;  // by a rank 0 that was taken for lost: nobody comes
  if (setting_.hosts == Setting::Hosts::one && !plan.shared_memory())
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
  const uint64_t published = storage().newest_published();
  if (keeps && best.first > 0 && published > best.first)
    throw Violation("generation " + std::to_string(plan.generation()) +
                    " begins with what is left of generation " + std::to_string(best.first) +
                    ", though there is a checkpoint of generation " + std::to_string(published));
  outcome_.told["kept"] += keeps;
  outcome_.told["restored"] += plan.content() == CollectivePlan::RESTORE;
  outcome_.told["shared"] += plan.shared_memory();
  outcome_.told["resized"] += size_ > 0 && size_ != plan.members_size();
  size_ = plan.members_size();
  World::opened(plan.generation());
}

void SimulatedJob::disturb(const Deviation& deviation) {
  if (deviation.fault == Fault::grow) return grow();
  if (deviation.fault == Fault::shrink) return shrink();
  quit(deviation.argument);
}

int SimulatedJob::staying() const {
  return static_cast<int>(
      std::ranges::count_if(seats_, [](const Seat& seat) { return !seat.done && !seat.leaving; }));
}

// In a place that nobody has, or whose last process has gone.
void SimulatedJob::grow() {
  if (!setting_.elastic() || storage().final()) return;
  const auto free = std::ranges::find_if(
      seats_, [](const Seat& seat) { return seat.place != kChief && seat.done; });
  if (free != seats_.end()) {
    free->done = free->leaving = false;
  } else if (static_cast<int>(seats_.size()) < setting_.most) {
    seats_.push_back({Place::of_rank(static_cast<int>(seats_.size()))});
  }
}

void SimulatedJob::shrink() {
  if (!setting_.elastic() || staying() <= setting_.least) return;
  const auto last = std::find_if(seats_.rbegin(), seats_.rend(), [](const Seat& seat) {
    return seat.place != kChief && !seat.done && !seat.leaving;
  });
  if (last == seats_.rend()) return;
  last->leaving = true;
  if (last->current >= 0)
    member(last->current)->leave();
  else
    last->done = true;
}

void SimulatedJob::quit(int argument) {
  if (!setting_.elastic() || staying() <= setting_.least) return;
  const int count = static_cast<int>(seats_.size());
  Seat& seat = seats_[static_cast<size_t>(argument % count)];
  if (seat.place == kChief || seat.done || seat.leaving) return;
  kill(seat, argument / count);
  seat.done = true;
}

void SimulatedJob::check_end() const {
  const SimulatedStorage::Folder* final = storage().final();
  if (!final) throw Violation("the job ended without a final checkpoint");
  books_.check_final(*final);
}

}  // namespace muster::collective::protocol
