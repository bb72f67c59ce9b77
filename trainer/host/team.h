#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace muster::host {

// A thread's place in the team. TeamThread 0 is the caller.
struct TeamThread {
  int index = 0;
  int count = 1;

  // Share of n things, in whole multiples of `grain` but for the last.
  int64_t begin(int64_t n, int64_t grain = 1) const { return border(n, grain, index); }
  int64_t end(int64_t n, int64_t grain = 1) const { return border(n, grain, index + 1); }

 private:
  int64_t border(int64_t n, int64_t grain, int at) const {
    const int64_t grains = (n + grain - 1) / grain;
    const int64_t border = grains * at / count * grain;
    return border < n ? border : n;
  }
};

// A count that only rises, modulo 2^32, and that others wait for. In a cache line of its own.
class alignas(128) Gate {
 public:
  // A long training passes 2^32 many times; beginning a thousand before it, every user and every
  // test does.
  static constexpr uint32_t kFirst = ~uint32_t{0} - 1000;

  // Releases what the caller wrote to whoever waited for it. One caller.
  void raise();
  // Until the count has passed `old` by one or two: spins so many times, then sleeps, for whoever
  // keeps it waiting longer has lost its core and may need this one.
  void await(uint32_t old, int64_t spins);

 private:
  std::atomic<uint32_t> count_{kFirst};
  std::atomic<uint32_t> sleepers_{0};
};

// A fixed team of threads that run one function together. `exclusive`, nobody else wants the cores:
// threads spin for some 50 us at barriers and for a millisecond between runs before they sleep;
// else for some microseconds at barriers and not at all between runs.
class Team {
 public:
  // Throws Unavailable where the system gives no more threads.
  Team(int count, bool exclusive);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int count() const { return static_cast<int>(seats_.size()); }

  // Runs work(thread) on every thread, the caller being thread 0; returns when all are done. `work`
  // must not throw.
  void run(const std::function<void(TeamThread)>& work);

  // Within run(): waits until every thread has come here; what they wrote before is visible after.
  void barrier(TeamThread thread);

 private:
  // Of one thread, who alone writes it.
  struct Seat {
    Gate arrived;
    uint32_t passed = Gate::kFirst;  // barriers
  };

  void serve(int index);
  void dismiss();

  std::vector<Seat> seats_;
  Gate round_;
  const std::function<void(TeamThread)>* work_ = nullptr;
  bool stop_ = false;
  int64_t idle_spins_;
  int64_t barrier_spins_;
  std::vector<std::thread> threads_;
};

}  // namespace muster::host
