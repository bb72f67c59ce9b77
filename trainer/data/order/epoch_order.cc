#include "trainer/data/order/epoch_order.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "common/error.h"
#include "trainer/data/order/random.h"

namespace muster::data {

EpochOrder::EpochOrder(uint64_t size, bool shuffle, uint64_t seed)
    : size_(size), shuffle_(shuffle), seed_(seed) {
  if (size > ~uint32_t{0}) {
    throw Invalid(fmt::format("expected fewer than 2^32 samples, found {}", size));
  }
  if (shuffle_) order_.resize(size);
}

uint64_t EpochOrder::at(uint64_t epoch, uint64_t position) {
  if (!shuffle_) return position;
  if (epoch != epoch_) build(epoch);
  return order_[position];
}

uint64_t shard_seed(uint64_t seed, size_t shard) {
  return shard == 0 ? seed : CounterRandom(seed, Stream::shard_seed).bits(shard);
}

void EpochOrder::build(uint64_t epoch) {
  std::iota(order_.begin(), order_.end(), uint32_t{0});
  const CounterRandom random(seed_, Stream::epoch_order, epoch);
  for (uint64_t i = size_; i > 1; --i) {
    std::swap(order_[i - 1], order_[random.below(i, i)]);
  }
  epoch_ = epoch;
}

}  // namespace muster::data
