#include "trainer/ps/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>

namespace muster::ps {

namespace {

static_assert(std::atomic_ref<uint32_t>::is_always_lock_free);

std::atomic_ref<uint32_t> at(const uint32_t& value) {
  return std::atomic_ref<uint32_t>(const_cast<uint32_t&>(value));
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

uint32_t rung(const Doorbell& bell) {
  return at(bell.count).load(std::memory_order_acquire);
}

// Sequentially consistent, here and where a sleeper looks again: either it sees the new count, or
// it is seen here.
void ring(Doorbell& bell) {
  at(bell.count).fetch_add(1, std::memory_order_seq_cst);
  if (at(bell.sleepers).load(std::memory_order_seq_cst) > 0)
    syscall(SYS_futex, &bell.count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void wait_for_ring(Doorbell& bell, uint32_t seen, std::chrono::nanoseconds most, uint32_t spins) {
  for (uint32_t i = 0; i < spins; ++i) {
    if (rung(bell) != seen) return;
    relax();
  }
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec timeout{whole.count(), (most - whole).count()};
  at(bell.sleepers).fetch_add(1, std::memory_order_seq_cst);
  if (at(bell.count).load(std::memory_order_seq_cst) == seen)
    syscall(SYS_futex, &bell.count, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  at(bell.sleepers).fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace muster::ps
