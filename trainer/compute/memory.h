#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "trainer/compute/aligned.h"
#include "trainer/compute/parameter_layout.h"
#include "trainer/compute/placed.h"

namespace muster::compute {

// Tells when a device has finished a piece of work.
class Completion {
 public:
  Completion() = default;  // the work is finished
  explicit Completion(std::function<void()> wait) : wait_(std::move(wait)) {}
  // Returns when the work is finished. Throws the device's error if it failed.
  void wait() {
    if (wait_) std::exchange(wait_, nullptr)();
  }

 private:
  std::function<void()> wait_;
};

// Floats in the memory of a device: parameters, gradients, or a slot of an optimizer.
class Memory {
 public:
  virtual ~Memory() = default;
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  virtual size_t size() const = 0;  // number of floats
  // Copy floats [range.begin, range.end) to or from other memory of range.size() floats, which the
  // device can address. Until the caller has waited for the completion, nobody may change either
  // memory or rely on the copy.
  virtual Completion read(Range range, PlacedFloats to) const = 0;
  virtual Completion write(Range range, ConstPlacedFloats from) = 0;
  // Returns the memory itself; of equal memories on several devices, the first device's.
  virtual PlacedFloats floats() = 0;
};

// Host memory: the object's own, or a view of other memory, which must outlive the object.
class HostMemory : public Memory {
 public:
  explicit HostMemory(size_t floats) : own_(floats), floats_(own_) {}
  explicit HostMemory(std::span<float> floats) : floats_(floats) {}

  size_t size() const override { return floats_.size(); }
  Completion read(Range range, PlacedFloats to) const override;
  Completion write(Range range, ConstPlacedFloats from) override;
  PlacedFloats floats() override { return floats_; }
  // Views other memory from here on.
  void view(std::span<float> floats) { floats_ = floats; }

 private:
  Floats own_;
  std::span<float> floats_;
};

// The whole content of a memory for the host: the memory itself, or a copy if the host cannot
// address it. The constructor fetches it.
class HostView {
 public:
  explicit HostView(Memory& memory);

  std::span<float> values() { return values_; }
  // Writes changed values back to the memory.
  void store();

 private:
  Memory& memory_;
  Floats copy_;
  std::span<float> values_;
};

}  // namespace muster::compute
