#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::data {

// The order of one epoch: a permutation of [0, size) that is a function of (seed, epoch) only, the
// same on every platform; the identity without shuffling. Not thread-safe. Needs 4 bytes for each
// sample.
class EpochOrder {
 public:
  // Throws Invalid for 2^32 samples or more.
  EpochOrder(uint64_t size, bool shuffle, uint64_t seed);
  // Returns the sample at `position` < size() of `epoch`. Keeps the last epoch's permutation.
  uint64_t at(uint64_t epoch, uint64_t position);
  uint64_t size() const { return size_; }

 private:
  void build(uint64_t epoch);
  uint64_t size_;
  bool shuffle_;
  uint64_t seed_;
  uint64_t epoch_ = ~uint64_t{0};
  std::vector<uint32_t> order_;
};

// Returns the seed for the order of one of several shards; for the first shard it is the seed
// itself.
uint64_t shard_seed(uint64_t seed, size_t shard);

}  // namespace muster::data
