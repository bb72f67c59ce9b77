#pragma once

#include <cstdint>
#include <vector>

#include "trainer/compute/loss_sums.h"

namespace muster::checkpoint {

// The sums of the training losses of two epochs: the newest one, and the last epoch before it that
// has rows. (In asynchronous training the last batches of an epoch are done after the first batches
// of the next.)
class EpochSums {
 public:
  struct Epoch {
    uint64_t number = 0;
    compute::LossSums sums;
  };

  // Adds the sums of some rows. Rows of earlier epochs are ignored.
  void add(uint64_t epoch, const compute::LossSums& sums);
  // Returns the sums of the epoch; they have no rows if none are known.
  compute::LossSums of(uint64_t epoch) const;
  // Returns the sums of the last whole epoch of a training that is in `epoch`. If they are not
  // known, returns the sums of `epoch` so far; if neither is known, sums without rows.
  compute::LossSums last_whole(uint64_t epoch) const;
  const Epoch& newest() const { return newest_; }
  // Returns the epochs that have rows, in order.
  std::vector<Epoch> known() const;

 private:
  Epoch newest_;
  Epoch before_;
};

}  // namespace muster::checkpoint
