#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/compute/tensor_ratios.h"
#include "trainer/ps/shard/shard_update.h"

namespace muster::host {
class Team;
struct Arithmetic;
}  // namespace muster::host

namespace muster::ps {

// An update on the CPU, block by block, so that a block stays in the cache while it is summed,
// applied and copied. Each float is computed separately, in the same order, so neither blocks nor
// threads change a bit. An optimizer that needs whole tensors measures the whole range before any
// block is applied.
class BlockUpdate : public ShardUpdate {
 public:
  // `rounded`: rounds gradients and copies to bfloat16, as if they had been sent in bfloat16.
  // Throws Unavailable if the system gives no threads. `optimizer` must outlive it.
  BlockUpdate(const compute::Optimizer& optimizer, int threads, bool rounded = false);
  ~BlockUpdate() override;

  void run(compute::Range range, const compute::UpdateArguments& arguments, const Buffers& buffers,
           bool together) override;
  void sum(Gradients gradients, std::span<float> to, bool together) override;
  void keep(compute::ConstPlacedFloats gradients, std::span<float> to) override;

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
  std::vector<Share> shares_;               // one for each thread
  std::unique_ptr<host::Team> team_;
  // The last range's ratios; used only if the optimizer needs whole tensors.
  std::optional<compute::TensorRatios> measured_;
  std::vector<float> ratios_;
};

}  // namespace muster::ps
