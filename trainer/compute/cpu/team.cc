#include "trainer/compute/cpu/team.h"

#include "trainer/compute/cpu/kernels.h"

namespace muster::compute::cpu {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// A pause takes 40 to 140 cycles, so these are about a millisecond, and some microseconds. A member
// that keeps others waiting for longer has lost its core: sleeping then gives it back sooner.
constexpr int64_t kMillisecond = 30'000;
constexpr int64_t kLong = 2'000;
constexpr int64_t kShort = 200;

}  // namespace

Team::Team(int count, bool exclusive)
    : seats_(static_cast<size_t>(count < 1 ? 1 : count)),
      idle_spins_(exclusive ? kMillisecond : 0),
      barrier_spins_(exclusive ? kLong : kShort) {
  for (int i = 1; i < this->count(); ++i) threads_.emplace_back([this, i] { serve(i); });
}

Team::~Team() {
  stop_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(const std::function<void(Member)>& work) {
  const FlushSubnormals flush;
  if (count() > 1) {
    work_ = &work;
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  const Member caller{0, count()};
  work(caller);
  barrier(caller);
}

void Team::serve(int index) {
  const FlushSubnormals flush;
  const Member member{index, count()};
  for (int32_t round = 0;; ++round) {
    await(round_, round, idle_spins_);
    if (stop_) return;
    (*work_)(member);
    barrier(member);
  }
}

void Team::barrier(Member member) {
  if (member.count == 1) return;
  Seat& own = seats_[static_cast<size_t>(member.index)];
  const int32_t target = ++own.passed;
  // Sequentially consistent: notify_all may otherwise look for sleepers before the store is seen.
  own.arrived.store(target, std::memory_order_seq_cst);
  own.arrived.notify_all();
  for (Seat& seat : seats_) await(seat.arrived, target - 1, barrier_spins_);
}

// Until value moves past `old`. Nobody is more than one barrier ahead, so unequal would do, but for
// a member that has passed this barrier and come to the next.
void Team::await(const std::atomic<int32_t>& value, int32_t old, int64_t spins) {
  for (int64_t i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) - old > 0) return;
    relax();
  }
  for (;;) {
    const int32_t now = value.load(std::memory_order_acquire);
    if (now - old > 0) return;
    value.wait(now, std::memory_order_acquire);
  }
}

}  // namespace muster::compute::cpu
