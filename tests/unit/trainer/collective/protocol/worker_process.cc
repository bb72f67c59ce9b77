#include "tests/unit/trainer/collective/protocol/worker_process.h"

#include "common/error.h"

namespace muster::collective::protocol {

WorkerProcess::WorkerProcess(SimulatedJob& job, int id, Place place, int attempt)
    : Process(job, id, place, attempt), job_(job), member_(job, *this) {}

// Rank 0 may have left before its last word reached us, or the group goes on without us.
bool WorkerProcess::may_end() const {
  if (member_.at() == Member::At::finished || member_.left_out()) return true;
  return !member_.client().connected() && job_.storage().final() != nullptr;
}

bool WorkerProcess::ready(int thread) const {
  if (thread == kRendezvous) return member_.ready_to_attend();
  if (thread == kWatching) return member_.ready_to_watch();
  return may_end() || member_.ready();
}

void WorkerProcess::act(int thread) {
  if (thread == kRendezvous) return member_.attend();
  if (thread == kWatching) return member_.watch();
  if (may_end()) return finish(true);
  try {
    member_.act();
  } catch (const Unavailable&) {
    finish(false);  // what it was to restore could not be read
  }
}

void WorkerProcess::receive(int stream, Side side, Message message) {
  if (!member_.receive(stream, side, message)) finish(false);
}

}  // namespace muster::collective::protocol
