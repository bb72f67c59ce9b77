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

  // This thread's share of n items, in whole multiples of `grain` except for the last item.
  int64_t begin(int64_t n, int64_t grain = 1) const { return border(n, grain, index); }
  int64_t end(int64_t n, int64_t grain = 1) const { return border(n, grain, index + 1); }

 private:
  int64_t border(int64_t n, int64_t grain, int at) const {
    const int64_t grains = (n + grain - 1) / grain;
    const int64_t border = grains * at / count * grain;
    return border < n ? border : n;
  }
};

// A count that only rises, modulo 2^32, and that other threads wait for. It has its own cache line.
class alignas(128) Gate {
 public:
  // The count begins a thousand before 2^32, so that every use and every test passes this border,
  // which a long training passes many times.
  static constexpr uint32_t kFirst = ~uint32_t{0} - 1000;

  // Makes the caller's writes visible to the threads that wait for the count. Only one thread may
  // call this.
  void raise();
  // Blocks until the count has passed `old` by one or two. Spins `spins` times, then sleeps: a
  // thread that makes us wait longer has lost its core and may need ours.
  void await(uint32_t old, int64_t spins);

 private:
  std::atomic<uint32_t> count_{kFirst};
  std::atomic<uint32_t> sleepers_{0};
};

// A fixed team of threads that run one function together. With `exclusive`, no other work needs the
// cores: threads spin for some 50 us at barriers and for a millisecond between runs before they
// sleep. Otherwise they spin for some microseconds at barriers and not at all between runs.
class Team {
 public:
  // Throws Unavailable if no more threads can be created.
  Team(int count, bool exclusive);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int count() const { return static_cast<int>(seats_.size()); }

  // Runs work(thread) on every thread, with the caller as thread 0; returns when all are done.
  // `work` must not throw.
  void run(const std::function<void(TeamThread)>& work);

  // Called within run(): waits until every thread has reached the barrier. Everything that the
  // threads wrote before it is visible after it.
  void barrier(TeamThread thread);

 private:
  // The barrier state of one thread; only that thread writes it.
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
