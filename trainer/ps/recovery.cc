#include "trainer/ps/recovery.h"

#include <algorithm>

namespace muster::ps {

Opening decide_opening(const std::vector<ShardState>& shards, bool sync, bool has_checkpoint) {
  Opening opening;
  uint64_t lowest = ~uint64_t{0};
  uint64_t highest = 0;
  bool whole = true;
  bool any = false;
  for (const ShardState& shard : shards) {
    opening.above = std::max(opening.above, shard.generation());
    lowest = std::min(lowest, shard.step());
    highest = std::max(highest, shard.step());
    any |= shard.generation() != 0;
    whole &= shard.generation() != 0 && shard.generation() == shards[0].generation();
  }
  // An asynchronous job is no cut anyway: each shard has its own count.
  if (whole && (!sync || highest - lowest <= 1)) {
    opening.content = OpenRequest::KEEP;
    opening.reason = "every shard holds step " + std::to_string(lowest);
    return opening;
  }
  opening.content = has_checkpoint ? OpenRequest::RESTORE : OpenRequest::INITIALIZE;
  opening.reason = any ? "a shard has lost its state" : "the shards are empty";
  return opening;
}

}  // namespace muster::ps
