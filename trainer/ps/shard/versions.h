#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"

namespace muster::ps {

// Floats that can be lent to a reader, which sends or saves them: the reader reads them in place,
// in any thread, as long as needed. A writer must check is_lent() first.
class Lendable {
 public:
  using Loan = std::shared_ptr<const compute::Floats>;

  Lendable() = default;  // none
  // `memory` contains the values and is kept as long as they are; null: the heap.
  explicit Lendable(compute::Floats values, std::shared_ptr<compute::FloatMemory> memory = nullptr)
      : buffer_(std::make_shared<Buffer>()) {
    buffer_->memory = std::move(memory);
    buffer_->values = std::move(values);
  }
  explicit operator bool() const { return buffer_ != nullptr; }
  bool operator==(const Lendable&) const = default;  // the same memory

  std::span<float> values() const {
    return buffer_ ? std::span<float>(buffer_->values) : std::span<float>();
  }
  Loan lend() const;  // null if empty
  // After it returns false, all reads by earlier loans have happened before.
  bool is_lent() const { return buffer_->loans.load(std::memory_order_acquire) > 0; }

 private:
  struct Buffer {
    std::shared_ptr<compute::FloatMemory> memory;  // outlives the values
    compute::Floats values;
    std::atomic<size_t> loans = 0;
  };
  std::shared_ptr<Buffer> buffer_;  // loans outlive us
};

// A shard's parameters, or one of their slots, now and one step ago. A reader that sends or saves
// them borrows them and reads them in place. Lent floats are not written before the last loan has
// ended, in any thread; meanwhile the next version is written to another buffer. So the largest
// number of buffers is two, plus one for each loan, plus one spare.
class Versions {
 public:
  using Loan = Lendable::Loan;

  // `spares` is the number of spare buffers to make now, so that a step never waits for the
  // system's memory. All buffers are in `memory`, as `values` are; null: the heap.
  void load(compute::Floats values, int spares = 0,
            std::shared_ptr<compute::FloatMemory> memory = nullptr);

  std::span<const float> current() const { return current_.values(); }
  std::span<const float> previous() const { return previous_.values(); }  // empty: there is none
  Loan lend_current() const { return current_.lend(); }
  Loan lend_previous() const { return previous_.lend(); }

  // Makes the current version the previous one. Returns the memory of the new current version; the
  // caller must write all of it.
  std::span<float> advance();
  // Returns the current version for the caller to change: in place or, while the version is lent,
  // in other memory, which the caller must write completely. The result of an earlier current() can
  // be read until the next call.
  std::span<float> change();

 private:
  Lendable make() const;
  Lendable take();
  void forget_spares();

  std::shared_ptr<compute::FloatMemory> memory_;
  Lendable current_;
  Lendable previous_;
  std::vector<Lendable> spare_;  // buffers of earlier versions, perhaps still lent
};

}  // namespace muster::ps
