#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"

namespace muster::ps {

// Floats that are lent to whoever sends or saves them: read where they lie, in whatever thread, for
// as long as it takes. Whoever would write to them asks is_lent() before.
class Lendable {
 public:
  using Loan = std::shared_ptr<const compute::Floats>;

  Lendable() = default;  // none
  explicit Lendable(compute::Floats values) : buffer_(std::make_shared<Buffer>()) {
    buffer_->values = std::move(values);
  }
  explicit operator bool() const { return buffer_ != nullptr; }
  bool operator==(const Lendable&) const = default;  // the same memory

  std::span<float> values() const {
    return buffer_ ? std::span<float>(buffer_->values) : std::span<float>();
  }
  Loan lend() const;  // null: there is nothing
  // Where it is not, what was read by virtue of the last loan was read before.
  bool is_lent() const { return buffer_->loans.load(std::memory_order_acquire) > 0; }

 private:
  struct Buffer {
    compute::Floats values;
    std::atomic<size_t> loans = 0;
  };
  std::shared_ptr<Buffer> buffer_;  // loans outlive us
};

// A shard's parameters, or a slot of theirs, as they are and as they were a step ago. Whoever sends
// them or saves them reads them where they lie: they are lent to it, and what is lent is not
// written before the last loan has ended, in whatever thread; the next version goes elsewhere
// meanwhile. So there are never more than two buffers, one for each loan, and a spare one.
class Versions {
 public:
  using Loan = Lendable::Loan;

  // `spares`: made now, so that a step never waits for the system's memory.
  void load(compute::Floats values, int spares = 0);

  std::span<const float> current() const { return current_.values(); }
  std::span<const float> previous() const { return previous_.values(); }  // empty: there is none
  Loan lend_current() const { return current_.lend(); }
  Loan lend_previous() const { return previous_.lend(); }

  // Makes the current one the previous one. What is returned is the current one from now on: the
  // caller writes all of it.
  std::span<float> advance();
  // The current one, for the caller to change: in place, or, while that is lent, all of it
  // elsewhere. What current() returned before can be read until the next call.
  std::span<float> change();

 private:
  Lendable make() const;
  Lendable take();
  void forget_spares();

  Lendable current_;
  Lendable previous_;
  std::vector<Lendable> spare_;  // of earlier versions, perhaps still lent
};

}  // namespace muster::ps
