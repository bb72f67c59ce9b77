#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"

namespace muster::ps {

// A shard's parameters, or a slot of theirs, as they are and as they were a step ago. Whoever sends
// them or saves them reads them where they lie: they are lent to it, and what is lent is not
// written before the last loan has ended, in whatever thread; the next version goes elsewhere
// meanwhile. So there are never more than two buffers, one for each loan, and a spare one.
class Versions {
 public:
  using Loan = std::shared_ptr<const compute::Floats>;

  // `spares`: made now, so that a step never waits for the system's memory.
  void load(compute::Floats values, int spares = 0);

  std::span<const float> current() const { return values_of(current_); }
  std::span<const float> previous() const { return values_of(previous_); }  // empty: there is none
  Loan lend_current() const { return lend(current_); }
  Loan lend_previous() const { return lend(previous_); }

  // Makes the current one the previous one. What is returned is the current one from now on: the
  // caller writes all of it.
  std::span<float> advance();
  // The current one, for the caller to change: in place, or, while that is lent, all of it
  // elsewhere. What current() returned before can be read until the next call.
  std::span<float> change();

 private:
  struct Buffer {
    compute::Floats values;
    std::atomic<size_t> loans = 0;
  };
  using Handle = std::shared_ptr<Buffer>;  // loans outlive us

  static std::span<float> values_of(const Handle& buffer) {
    return buffer ? std::span<float>(buffer->values) : std::span<float>();
  }
  static Loan lend(const Handle& buffer);
  static bool is_lent(const Handle& buffer);
  Handle make() const;
  Handle take();
  void forget_spares();

  Handle current_;
  Handle previous_;
  std::vector<Handle> spare_;  // of earlier versions, perhaps still lent
};

}  // namespace muster::ps
