#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/compute/optimizer.h"
#include "trainer/compute/tensor_ratios.h"

namespace muster::host {
class Team;
struct Arithmetic;
}  // namespace muster::host

namespace muster::ps {

// One update of a shard's range, block by block: what is summed, applied and copied meets in the
// cache. Every float is worked on by itself, in the same order: neither blocks nor threads change a
// bit. An optimizer that needs whole tensors measures the whole range before any block is applied.
class BlockUpdate {
 public:
  using Gradients = std::span<const std::span<const float>>;
  struct Buffers {
    std::span<const float> from;  // the parameters before
    std::span<float> to;          // and after; may be the same memory
    // Summed in a fixed tree: ((0 + 1) + (2 + 3)) + ((4 + 5) + 6), the same whoever came first.
    Gradients gradients;
    std::span<const float> sum;  // of them, if it has been made already
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
  // Throws Invalid where the optimizer needs whole tensors and the range cuts one.
  void run(compute::Range range, const compute::UpdateArguments& arguments, const Buffers& buffers,
           bool together);
  // The gradients' sum, as run() makes it.
  void sum(Gradients gradients, std::span<float> to, bool together);

 private:
  struct Share;
  template <class Work>
  void each_share(size_t gradients, bool together, const Work& work);
  template <class Work>
  void each_block(size_t floats, size_t gradients, bool together, const Work& work);
  void measure(compute::Range range, const compute::UpdateArguments& arguments,
               const Buffers& buffers, bool together);
  void run_block(Share& share, compute::Range range, compute::Range block,
                 const compute::UpdateArguments& arguments, const Buffers& buffers) const;
  const float* summed(Share& share, compute::Range block, const Buffers& buffers) const;
  const float* sum_block(Share& share, compute::Range block, Gradients gradients,
                         size_t level) const;

  const compute::Optimizer& optimizer_;
  const host::Arithmetic& arithmetic_;
  const host::Arithmetic* const rounding_;  // null: none
  std::vector<Share> shares_;               // of each thread
  std::unique_ptr<host::Team> team_;
  // Where the optimizer needs whole tensors: of the last range.
  std::optional<compute::TensorRatios> measured_;
  std::vector<float> ratios_;
};

}  // namespace muster::ps
