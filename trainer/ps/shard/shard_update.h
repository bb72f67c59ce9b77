#pragma once

#include <memory>
#include <span>

#include "trainer/compute/aligned.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/parameter_layout.h"
#include "trainer/compute/placed.h"

namespace muster::ps {

// Updates of a shard's range, on the device that keeps the shard.
class ShardUpdate {
 public:
  // Both may be in the memory of a device.
  using Gradients = std::span<const compute::ConstPlacedFloats>;
  using Copies = std::span<const compute::PlacedFloats>;
  struct Buffers {
    std::span<const float> from;  // the parameters before
    std::span<float> to;          // the parameters after; may be the same memory
    // Summed in a fixed tree: ((0 + 1) + (2 + 3)) + ((4 + 5) + 6), whatever the order of arrival.
    Gradients gradients;
    std::span<const float> sum;  // the sum of the gradients, if it is already made
    std::span<const std::span<const float>> slots_from;
    std::span<const std::span<float>> slots;  // slots after; may be the same memory
    Copies copies;                            // copies of the parameters after
  };

  virtual ~ShardUpdate() = default;

  // Makes the update. Every buffer has range.size() floats. `together`: with all threads. One
  // caller at a time. Throws DeviceError if the device fails. If the optimizer needs whole tensors
  // and the range cuts one, run() throws Invalid, or the constructor if it has the range.
  virtual void run(compute::Range range, const compute::UpdateArguments& arguments,
                   const Buffers& buffers, bool together) = 0;
  // Writes the sum of the gradients to `to`, computed as in run().
  virtual void sum(Gradients gradients, std::span<float> to, bool together) = 0;

  // Returns the memory for the shard's own floats, which the host can address; null: the heap.
  virtual std::shared_ptr<compute::FloatMemory> memory() { return nullptr; }
  // Returns `count` floats of that memory, all zeros.
  compute::Floats floats(size_t count) {
    return compute::Floats(count, compute::CacheLineAllocator<float>(memory().get()));
  }
  // Copies gradients to the shard's own floats.
  virtual void keep(compute::ConstPlacedFloats gradients, std::span<float> to) = 0;
};

}  // namespace muster::ps
