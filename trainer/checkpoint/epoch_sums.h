#pragma once

#include <cstdint>
#include <optional>
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
  // The mean loss of a training that stands in `epoch`: of the last whole epoch, else of what was
  // trained on of the first one; nothing where that is not known.
  std::optional<double> train_loss(uint64_t epoch) const;
  // The same of the rows that were classified as they should be: their share.
  std::optional<double> train_accuracy(uint64_t epoch) const;
  const Epoch& newest() const { return newest_; }
  // Those that any rows were of, in order.
  std::vector<Epoch> known() const;

 private:
  compute::LossSums last_whole(uint64_t epoch) const;

  Epoch newest_;
  Epoch before_;
};

}  // namespace muster::checkpoint
