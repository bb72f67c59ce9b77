#pragma once

#include <chrono>
#include <cstdint>

namespace muster {

// A count that one thread waits for and others raise, also from other processes: it may lie in
// shared memory. The waiting thread must read the count, then check its condition, and only then
// wait: what was written before a ring is visible after it.
struct Doorbell {
  uint32_t count = 0;
  uint32_t sleepers = 0;
};

uint32_t rung(const Doorbell& bell);
// Raises the count (modulo 2^32) and wakes every thread that sleeps on it.
void ring(Doorbell& bell);
// Waits until the count is not `seen`, for at most the time `most`; may return early. Looks at the
// count `spins` times (10,000 at most: another process may have written the number) before it
// sleeps, and half as often after each wait of the thread that was much longer, until one is short
// again. Spinning pays only where cores are to spare: on a core that others want, it delays the
// very thread that would ring.
void wait_for_ring(Doorbell& bell, uint32_t seen, std::chrono::nanoseconds most, uint32_t spins);
// Returns how many `spins` pay where `threads` threads of this host are busy and wait for each
// other: about 50 us of spinning, the cost of two wake-ups, if each thread can have its own core;
// else 0.
uint32_t worthwhile_spins(int threads);

}  // namespace muster
