#pragma once

#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/optimizer.h"

namespace muster::compute::cpu {
class Team;
struct Kernels;
struct Member;
}  // namespace muster::compute::cpu

namespace muster::ps {

// One update of a shard's range, block by block: what is summed, applied and copied meets in the
// cache. Every float is worked on by itself, in the same order: neither blocks nor threads change a
// bit.
class BlockUpdate {
 public:
  struct Buffers {
    std::span<const float> from;  // the parameters before
    std::span<float> to;          // and after; may be the same memory
    // Summed in a fixed tree: ((0 + 1) + (2 + 3)) + ((4 + 5) + 6), the same whoever came first.
    std::span<const std::span<const float>> gradients;
    std::span<const std::span<const float>> slots_from;
    std::span<const std::span<float>> slots;   // likewise
    std::span<const std::span<float>> copies;  // of the parameters after
  };

  // `rounded`: gradients and copies to bfloat16, as if they had been sent so. Throws Unavailable
  // where the system gives no threads. `optimizer` must outlive it.
  BlockUpdate(const compute::Optimizer& optimizer, int threads, bool rounded = false);
  ~BlockUpdate();
  BlockUpdate(BlockUpdate&&) noexcept;

  // Every buffer has range.size() floats. `together`: with all threads. One caller at a time.
  void run(compute::Range range, const compute::UpdateArguments& arguments, const Buffers& buffers,
           bool together);

 private:
  struct Share;
  void run_share(Share& share, const compute::cpu::Member& member, compute::Range range,
                 const compute::UpdateArguments& arguments, const Buffers& buffers) const;
  void run_block(Share& share, compute::Range range, compute::Range block,
                 const compute::UpdateArguments& arguments, const Buffers& buffers) const;
  using Gradients = std::span<const std::span<const float>>;
  const float* sum(Share& share, compute::Range block, Gradients gradients, size_t level) const;

  const compute::Optimizer& optimizer_;
  const compute::cpu::Kernels& kernels_;
  const compute::cpu::Kernels* const rounding_;  // null: none
  std::vector<Share> shares_;                    // of each thread
  std::unique_ptr<compute::cpu::Team> team_;
};

}  // namespace muster::ps
