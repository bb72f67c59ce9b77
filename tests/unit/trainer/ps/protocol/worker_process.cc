#include "tests/unit/trainer/ps/protocol/worker_process.h"

namespace muster::ps::protocol {

WorkerProcess::WorkerProcess(World& world, int id, Place place, int attempt)
    : Process(world, id, place, attempt),
      client_(world, *this, id),
      member_(world, id, static_cast<uint32_t>(place.index) + 1) {}

// All steps are committed and saved; rank 0 may have left before its last word reached us.
bool WorkerProcess::may_end() const {
  if (client_.view().phase() == GroupView::FINISHED) return true;
  return !client_.connected() && world_.storage().final() != nullptr;
}

bool WorkerProcess::ready(int thread) const {
  if (thread == kRendezvous) return client_.wants_connection();
  return may_end() || member_.ready(client_.view());
}

void WorkerProcess::act(int thread) {
  if (thread == kRendezvous) return client_.connect({});
  if (may_end()) return finish(true);
  member_.act(client_.view());
}

void WorkerProcess::receive(int stream, Message message) {
  if (client_.owns(stream)) {
    if (!client_.receive(message)) finish(false);
    return;
  }
  member_.receive(stream, message);
}

}  // namespace muster::ps::protocol
