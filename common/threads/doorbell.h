#pragma once

#include <chrono>
#include <cstdint>

namespace muster {

// A count that one thread waits for and other threads raise. It may be in shared memory, with
// threads of other processes. The waiting thread must read the count, then check its condition, and
// only then wait. Everything written before a ring is visible after it.
struct Doorbell {
  uint32_t count = 0;
  uint32_t sleepers = 0;
};

uint32_t rung(const Doorbell& bell);
// Raises the count (modulo 2^32) and wakes every thread that sleeps on it.
void ring(Doorbell& bell);
// Waits until the count is not `seen`, for at most the time `most`; may return early. Reads the
// count `spins` times before it sleeps (at most 10,000 times: another process may have written the
// number). After each wait that was much longer, the thread spins half as often, until a wait is
// short again. Spinning is useful only if there are free cores: on a busy core it delays the thread
// that would ring.
void wait_for_ring(Doorbell& bell, uint32_t seen, std::chrono::nanoseconds most, uint32_t spins);
// Returns the useful number of `spins` if `threads` threads of this host are busy and wait for each
// other: about 50 us of spinning, the cost of two wake-ups, if each thread can have its own core;
// else 0.
uint32_t worthwhile_spins(int threads);

}  // namespace muster
