#include "tests/unit/trainer/ps/protocol/worker_process.h"

namespace muster::ps::protocol {

WorkerProcess::WorkerProcess(SimulatedJob& job, int id, Place place, int attempt)
    : Process(job, id, place, attempt),
      job_(job),
      client_(job, *this),
      member_(job, id, static_cast<uint32_t>(place.index) + 1) {}

// All steps are committed and saved; rank 0 may have left before its last word reached us.
bool WorkerProcess::may_end() const {
  if (client_.view().phase() == GroupView::FINISHED) return true;
  return !client_.connected() && job_.storage().final() != nullptr;
}

bool WorkerProcess::ready(int thread) const {
  if (thread == kRendezvous) return client_.ready();
  return may_end() || member_.ready(client_.view());
}

void WorkerProcess::act(int thread) {
  if (thread == kRendezvous) return client_.act({});
  if (may_end()) return finish(true);
  member_.act(client_.view());
}

void WorkerProcess::receive(int stream, Side side, Message message) {
  if (client_.owns(stream, side)) {
    if (!client_.receive(message)) finish(false);
    return;
  }
  member_.receive(stream, message);
}

}  // namespace muster::ps::protocol
