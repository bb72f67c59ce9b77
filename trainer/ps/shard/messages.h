#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/compute/loss_sums.h"
#include "trainer/group/position.h"
#include "trainer/spec/training_spec.h"

namespace muster::ps {

// The messages between members and shards as values, the same for every transport.
// proto/muster/parameter_server.proto explains them.

// The metadata key of every control call for the job's uid.
inline constexpr char kJobUidKey[] = "muster-job-uid-bin";

// The ranks whose pushes made a step, with backup workers; empty if not known.
constexpr size_t kMostContributors = 1024;
using Contributors = std::bitset<kMostContributors>;

struct PushHeader {
  uint64_t generation = 0;
  uint32_t rank = 0;
  uint64_t step = 0;
  uint64_t sequence = 0;
  uint64_t ticket = 0;
  bool pull = false;
  bool newest = false;
  Contributors contributors;
  compute::LossSums sums;
};

using group::EpochSumsMessages;
using group::from_message;
using group::from_messages;
using group::get_sums;
using group::set_sums;
using group::to_message;
using group::to_messages;
using spec::SyncPolicy;

enum class Status { ok, superseded, rejected };

struct ReplyHeader {
  Status status = Status::ok;
  std::string message;
  uint64_t generation = 0;
  uint64_t step = 0;
  uint64_t sequence = 0;
  compute::LossSums sums;
  std::optional<uint64_t> ticket;
  bool finished = false;
  Contributors contributors;
};

}  // namespace muster::ps
