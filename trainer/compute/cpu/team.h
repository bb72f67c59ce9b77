#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace muster::compute::cpu {

// A member's place in the team. Member 0 is the caller.
struct Member {
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

// A fixed team of threads that run one function together. `exclusive`: nobody else wants the cores,
// so members spin, at barriers without end and between runs for a millisecond; else they sleep at
// once between runs and after a short spin at barriers.
class Team {
 public:
  Team(int count, bool exclusive);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int count() const { return static_cast<int>(seats_.size()); }

  // Runs work(member) on every member, the caller being member 0; returns when all are done. `work`
  // must not throw.
  void run(const std::function<void(Member)>& work);

  // Within run(): waits until every member has come here; what they wrote before is visible after.
  void barrier(Member member);

 private:
  // Each member's count of barriers passed, in a cache line of its own: everybody reads all of
  // them.
  struct alignas(128) Seat {
    std::atomic<int32_t> arrived{0};
    int32_t passed = 0;
  };

  void serve(int index);
  void await(const std::atomic<int32_t>& value, int32_t old, int64_t spins);

  std::vector<Seat> seats_;
  alignas(128) std::atomic<int32_t> round_{0};
  const std::function<void(Member)>* work_ = nullptr;
  bool stop_ = false;
  int64_t idle_spins_;
  int64_t barrier_spins_;
  std::vector<std::thread> threads_;
};

}  // namespace muster::compute::cpu
