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

// One update of a shard's range, block by block, so that a block stays in the cache while it is
// summed, applied and copied. Every float is computed by itself, in the same order: neither blocks
// nor threads change a bit. An optimizer that needs whole tensors measures the whole range before
// any block is applied.
class BlockUpdate {
 public:
  using Gradients = std::span<const std::span<const float>>;
  struct Buffers {
    std::span<const float> from;  // the parameters before
    std::span<float> to;          // those after; may be the same memory
    // Summed in a fixed tree: ((0 + 1) + (2 + 3)) + ((4 + 5) + 6), whatever the order of arrival.
    Gradients gradients;
    std::span<const float> sum;  // the gradients' sum, if already made
    std::span<const std::span<const float>> slots_from;
    std::span<const std::span<float>> slots;   // slots after; may be the same memory
    std::span<const std::span<float>> copies;  // of the parameters after
  };

  // `rounded`: rounds gradients and copies to bfloat16, as if they had been sent so. Throws
  // Unavailable if the system gives no threads. `optimizer` must outlive it.
  BlockUpdate(const compute::Optimizer& optimizer, int threads, bool rounded = false);
  ~BlockUpdate();
  BlockUpdate(BlockUpdate&&) noexcept;

  // Makes the update. Every buffer has range.size() floats. `together`: with all threads. One
  // caller at a time. Throws Invalid if the optimizer needs whole tensors and the range cuts one.
  void run(compute::Range range, const compute::UpdateArguments& arguments, const Buffers& buffers,
           bool together);
  // Writes the gradients' sum to `to`, as run() makes it.
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
  // The last range's ratios; used only if the optimizer needs whole tensors.
  std::optional<compute::TensorRatios> measured_;
  std::vector<float> ratios_;
};

}  // namespace muster::ps
