#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "trainer/compute/aligned.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

// Says when a device has done what it was asked for.
class Completion {
 public:
  Completion() = default;  // it has
  explicit Completion(std::function<void()> wait) : wait_(std::move(wait)) {}
  // Returns when it has. Throws what the device met.
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

  virtual size_t size() const = 0;  // in floats
  // Copies floats [range.begin, range.end) to or from memory of the host, range.size() floats.
  // Until the completion was waited for, nobody may change either memory, nor rely on what was
  // copied.
  virtual Completion read(Range range, std::span<float> to) const = 0;
  virtual Completion write(Range range, std::span<const float> from) = 0;
  // The memory itself where the host can address it; else empty.
  virtual std::span<float> host_view() = 0;
};

// Memory of the host: its own, or a view of another's, which must outlive it.
class HostMemory : public Memory {
 public:
  explicit HostMemory(size_t floats) : own_(floats), floats_(own_) {}
  explicit HostMemory(std::span<float> floats) : floats_(floats) {}

  size_t size() const override { return floats_.size(); }
  Completion read(Range range, std::span<float> to) const override;
  Completion write(Range range, std::span<const float> from) override;
  std::span<float> host_view() override { return floats_; }
  // Views other memory from here on.
  void view(std::span<float> floats) { floats_ = floats; }

 private:
  Floats own_;
  std::span<float> floats_;
};

// All of a memory as the host has it: the memory itself, or a copy where the host cannot address
// it. Fetched when made.
class HostView {
 public:
  explicit HostView(Memory& memory);

  std::span<float> values() { return values_; }
  // Brings changed values to the memory.
  void store();

 private:
  Memory& memory_;
  Floats copy_;
  std::span<float> values_;
};

}  // namespace muster::compute
