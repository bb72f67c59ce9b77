#include "common/doorbell.h"

#include <atomic>

#include "common/cpu_budget.h"
#include "common/futex.h"

namespace muster {

namespace {

static_assert(std::atomic_ref<uint32_t>::is_always_lock_free);

std::atomic_ref<uint32_t> at(const uint32_t& value) {
  return std::atomic_ref<uint32_t>(const_cast<uint32_t&>(value));
}

}  // namespace

uint32_t rung(const Doorbell& bell) {
  return at(bell.count).load(std::memory_order_acquire);
}

// The accesses here and before a sleep are sequentially consistent: either the sleeper sees the new
// count, or this function sees the sleeper.
void ring(Doorbell& bell) {
  at(bell.count).fetch_add(1, std::memory_order_seq_cst);
  if (at(bell.sleepers).load(std::memory_order_seq_cst) > 0)
    futex_wake_all(&bell.count, FutexScope::shared);
}

void wait_for_ring(Doorbell& bell, uint32_t seen, std::chrono::nanoseconds most, uint32_t spins) {
  for (uint32_t i = 0; i < spins; ++i) {
    if (rung(bell) != seen) return;
    spin_pause();
  }
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec timeout{whole.count(), (most - whole).count()};
  at(bell.sleepers).fetch_add(1, std::memory_order_seq_cst);
  if (at(bell.count).load(std::memory_order_seq_cst) == seen)
    futex_wait(&bell.count, seen, FutexScope::shared, &timeout);
  at(bell.sleepers).fetch_sub(1, std::memory_order_relaxed);
}

uint32_t worthwhile_spins(int threads) {
  return cpu_budget() >= threads ? 2000 : 0;
}

}  // namespace muster
