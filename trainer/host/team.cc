#include "trainer/host/team.h"

#include <string>
#include <system_error>

#include "common/error.h"
#include "common/threads/futex.h"
#include "common/threads/watched_work.h"
#include "trainer/host/instruction_set.h"

namespace muster::host {
namespace {

// These are counts of pauses of 40 to 140 cycles: reading a clock would cost more than most waits.
constexpr int64_t kMillisecond = 30'000;
constexpr int64_t kFiftyMicroseconds = 2'000;
constexpr int64_t kShort = 200;

}  // namespace

// The accesses here and in a sleeper's second look are sequentially consistent: either the sleeper
// sees the new count, or this thread sees the sleeper's entry in sleepers_.
void Gate::raise() {
  count_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake_all(&count_, FutexScope::process);
}

// Testing for an unequal count would be enough, except for a thread that has passed this barrier
// and reached the next.
void Gate::await(uint32_t old, int64_t spins) {
  const auto past = [old](uint32_t now) { return static_cast<int32_t>(now - old) > 0; };
  for (int64_t i = 0; i < spins; ++i) {
    if (past(count_.load(std::memory_order_acquire))) return;
    spin_pause();
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint32_t now = count_.load(std::memory_order_seq_cst);
    if (past(now)) break;
    futex_wait(&count_, now, FutexScope::process);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

Team::Team(int count, bool exclusive)
    : seats_(static_cast<size_t>(count < 1 ? 1 : count)),
      idle_spins_(exclusive ? kMillisecond : 0),
      barrier_spins_(exclusive ? kFiftyMicroseconds : kShort) {
  try {
    for (int i = 1; i < this->count(); ++i) threads_.emplace_back([this, i] { serve(i); });
  } catch (const std::system_error& error) {
    const size_t started = threads_.size() + 1;
    dismiss();
    throw Unavailable("cannot have " + std::to_string(this->count()) + " threads, only " +
                      std::to_string(started) + ": " + error.what());
  }
}

Team::~Team() {
  dismiss();
}

void Team::dismiss() {
  stop_ = true;
  round_.raise();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(const std::function<void(TeamThread)>& work) {
  const FlushSubnormals flush;
  if (count() > 1) {
    work_ = &work;
    round_.raise();
  }
  const TeamThread caller{0, count()};
  work(caller);
  barrier(caller);
}

void Team::serve(int index) {
  const FlushSubnormals flush;
  const TeamThread thread{index, count()};
  for (uint32_t round = Gate::kFirst;; ++round) {
    round_.await(round, idle_spins_);
    if (stop_) return;
    (*work_)(thread);
    barrier(thread);
  }
}

void Team::barrier(TeamThread thread) {
  if (thread.index == 0) WatchedWork::beat();
  if (thread.count == 1) return;
  Seat& own = seats_[static_cast<size_t>(thread.index)];
  const uint32_t before = own.passed++;
  own.arrived.raise();
  for (Seat& seat : seats_) seat.arrived.await(before, barrier_spins_);
}

}  // namespace muster::host
