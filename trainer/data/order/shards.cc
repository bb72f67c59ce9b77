#include "trainer/data/order/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/error.h"

namespace muster::data {

Shards Shards::by_record(uint64_t samples, const BatchRule& rule) {
  return Shards({samples}, {}, rule);
}

Shards Shards::by_file(const std::vector<uint64_t>& samples_of_files, const Replicas& replicas,
                       const BatchRule& rule) {
  std::vector<uint64_t> sizes(static_cast<size_t>(replicas.of));
  for (size_t file = 0; file < samples_of_files.size(); ++file) {
    sizes[file % sizes.size()] += samples_of_files[file];
  }
  return Shards(std::move(sizes), replicas, rule);
}

Shards::Shards(std::vector<uint64_t> sizes, const Replicas& replicas, const BatchRule& rule)
    : sizes_(std::move(sizes)), rule_(rule) {
  const uint64_t accumulation = static_cast<uint64_t>(rule_.accumulation);
  for (size_t shard = 0; shard < sizes_.size(); ++shard) {
    const uint64_t batches = batches_of(sizes_[shard]);
    if (batches == 0) continue;
    const uint64_t last = batches - 1;
    const uint64_t number =
        (last / accumulation * sizes_.size() + shard) * accumulation + last % accumulation;
    batches_per_epoch_ = std::max(batches_per_epoch_, number + 1);
  }
  uint64_t begin = 0;
  const auto first = static_cast<size_t>(replicas.first);
  for (size_t shard = first; shard < first + static_cast<size_t>(replicas.count); ++shard) {
    held_.push_back({shard, begin, sizes_.at(shard)});
    begin += sizes_[shard];
  }
}

uint64_t Shards::batches_of(uint64_t samples) const {
  const auto rows = static_cast<uint64_t>(rule_.rows);
  return rule_.drop_remainder ? samples / rows : quotient_up(samples, rows);
}

uint64_t Shards::samples() const {
  return std::accumulate(sizes_.begin(), sizes_.end(), uint64_t{0});
}

Shards::Place Shards::place(uint64_t batch) const {
  const uint64_t accumulation = static_cast<uint64_t>(rule_.accumulation);
  const uint64_t turn = batch / accumulation;
  const size_t shard = turn % sizes_.size();
  const size_t first = held_.front().shard;
  if (shard < first || shard - first >= held_.size()) {
    throw Invalid(
        fmt::format("batch {}: expected one of the logical replicas {} to {} of {}, whose "
                    "files are read here, found one of {}",
                    batch, first, held_.back().shard, sizes_.size(), shard));
  }
  const uint64_t local = turn / sizes_.size() * accumulation + batch % accumulation;
  Place place;
  place.held = shard - first;
  if (local >= batches_of(sizes_[shard])) return place;
  place.begin = local * static_cast<uint64_t>(rule_.rows);
  place.rows = std::min(rule_.rows, static_cast<int64_t>(sizes_[shard] - place.begin));
  return place;
}

}  // namespace muster::data
