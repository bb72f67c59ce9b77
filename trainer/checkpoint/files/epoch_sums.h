#pragma once

#include <cstdint>
#include <vector>

#include "trainer/compute/loss_sums.h"

namespace muster::checkpoint {

// The sums of the training losses by epoch: of the newest epoch and of the one before it that has
// rows. (In asynchronous training an epoch's last batches are done after the next one's first.)
class EpochSums {
 public:
  struct Epoch {
    uint64_t number = 0;
    compute::LossSums sums;
  };

  // Adds the sums of some rows. Rows of an epoch before those two are ignored.
  void add(uint64_t epoch, const compute::LossSums& sums);
  // Returns the sums of the epoch; they have no rows if none are known.
  compute::LossSums of(uint64_t epoch) const;
  // Returns the sums of the last whole epoch of a training that stands in `epoch`; if they are not
  // known, those of `epoch` itself so far; no rows if neither is known.
  compute::LossSums last_whole(uint64_t epoch) const;
  const Epoch& newest() const { return newest_; }
  // Returns the epochs that have rows, in order.
  std::vector<Epoch> known() const;

 private:
  Epoch newest_;
  Epoch before_;
};

}  // namespace muster::checkpoint
