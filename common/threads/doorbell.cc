#include "common/threads/doorbell.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "common/threads/cpu_budget.h"
#include "common/threads/futex.h"

namespace muster {

namespace {

static_assert(std::atomic_ref<uint32_t>::is_always_lock_free);

// A thread that slept for less than this may have slept only because it did not spin long enough:
// waking a thread takes most of this time.
constexpr std::chrono::microseconds kShort{200};
constexpr uint32_t kMostHalvings = 5;
constexpr uint32_t kMostSpins = 10000;

std::atomic_ref<uint32_t> at(const uint32_t& value) {
  return std::atomic_ref<uint32_t>(const_cast<uint32_t&>(value));
}

void sleep_until_rung(Doorbell& bell, uint32_t seen, std::chrono::nanoseconds most) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec timeout{whole.count(), (most - whole).count()};
  at(bell.sleepers).fetch_add(1, std::memory_order_seq_cst);
  if (at(bell.count).load(std::memory_order_seq_cst) == seen)
    futex_wait(&bell.count, seen, FutexScope::shared, &timeout);
  at(bell.sleepers).fetch_sub(1, std::memory_order_relaxed);
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
  static thread_local uint32_t halvings = 0;
  spins = std::min(spins, kMostSpins) >> halvings;
  for (uint32_t i = 0; i < spins; ++i) {
    if (rung(bell) != seen) {
      halvings = 0;
      return;
    }
    spin_pause();
  }
  const auto begun = std::chrono::steady_clock::now();
  sleep_until_rung(bell, seen, most);
  const bool was_short = std::chrono::steady_clock::now() - begun < kShort;
  halvings = was_short ? 0 : std::min(halvings + 1, kMostHalvings);
}

uint32_t worthwhile_spins(int threads) {
  return cpu_budget() >= threads ? 2000 : 0;
}

}  // namespace muster
