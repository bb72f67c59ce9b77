#pragma once

#include <cstdint>
#include <vector>

#include "trainer/compute/loss_sums.h"

namespace muster::checkpoint {

// What was trained on, summed by epoch: of the newest epoch and of the one before it that any rows
// were of. (Asynchronously an epoch's last batches are done after the next one's first.)
class EpochSums {
 public:
  struct Epoch {
    uint64_t number = 0;
    compute::LossSums sums;
  };

  // Rows of an epoch before those two are forgotten.
  void add(uint64_t epoch, const compute::LossSums& sums);
  // No rows where none are known.
  compute::LossSums of(uint64_t epoch) const;
  // Of a training that stands in `epoch`: those of the last whole epoch, else of what was trained
  // on of the first one; no rows where that is not known.
  compute::LossSums last_whole(uint64_t epoch) const;
  const Epoch& newest() const { return newest_; }
  // Those that any rows were of, in order.
  std::vector<Epoch> known() const;

 private:
  Epoch newest_;
  Epoch before_;
};

}  // namespace muster::checkpoint
