#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"

namespace muster::ps {

// Floats that can be lent to a reader, which sends or saves them: it reads them in place, in any
// thread, for as long as needed. A writer must ask is_lent() first.
class Lendable {
 public:
  using Loan = std::shared_ptr<const compute::Floats>;

  Lendable() = default;  // none
  // `memory`, in which the values lie, is kept for as long as they are; null: the heap.
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
  // If it returns false, all reads by the last loan happened before this call.
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
// ended, in whatever thread; the next version is written to another buffer meanwhile. So there are
// never more buffers than two, one for each loan, and a spare one.
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

  // Makes the current version the previous one. Returns the memory of the new current version, all
  // of which the caller must write.
  std::span<float> advance();
  // Returns the current version for the caller to change: in place or, while that is lent, other
  // memory, all of which the caller must write. What current() returned before can be read until
  // the next call.
  std::span<float> change();

 private:
  Lendable make() const;
  Lendable take();
  void forget_spares();

  std::shared_ptr<compute::FloatMemory> memory_;
  Lendable current_;
  Lendable previous_;
  std::vector<Lendable> spare_;  // of earlier versions, perhaps still lent
};

}  // namespace muster::ps
