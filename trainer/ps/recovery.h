#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/muster/parameter_server.pb.h"

namespace muster::ps {

// How a generation opens, from what each shard holds: a pure decision.
//  - every shard holds the same generation, at one step or (sync: a commit under way) two in a row:
//    what they hold is good;
//  - else the newest checkpoint, if there is one; else the beginning.
// Shards that hold something are overruled where one holds nothing: they would be of another time.
struct Opening {
  OpenRequest::Content content = OpenRequest::INITIALIZE;
  uint64_t above = 0;  // the new generation is greater than this
  std::string reason;  // for the log
};

Opening decide_opening(const std::vector<ShardState>& shards, bool sync, bool has_checkpoint);

}  // namespace muster::ps
