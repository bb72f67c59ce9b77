#pragma once

#include <chrono>
#include <cstdint>

namespace muster {

// A count that one thread waits for and others raise, also from other processes: it may lie in
// shared memory. Who waits must look at what it waits for after reading the count and before
// waiting: what was written before a ring is visible after it.
struct Doorbell {
  uint32_t count = 0;
  uint32_t sleepers = 0;
};

uint32_t rung(const Doorbell& bell);
// Modulo 2^32; wakes whoever sleeps.
void ring(Doorbell& bell);
// Until the count is not `seen`, or `most`; may return early. Looks `spins` times before it sleeps:
// worth it only where there are cores to spare, for on a core that others want it delays the very
// thing that is waited for.
void wait_for_ring(Doorbell& bell, uint32_t seen, std::chrono::nanoseconds most, uint32_t spins);
// How often to look where so many threads of this host are busy and wait for each other: some 50 us
// if each could have a core of its own, which is what two wake-ups cost; else 0.
uint32_t worthwhile_spins(int threads);

}  // namespace muster
