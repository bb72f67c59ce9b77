#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>

#include "proto/muster/rendezvous.pb.h"
#include "trainer/checkpoint/epoch_sums.h"
#include "trainer/compute/engine.h"

namespace muster::ps {

// What members and shards say to each other, as values: the same whatever carries them. Their
// meaning is in proto/muster/parameter_server.proto.

// Metadata of every control call: the job's uid.
inline constexpr char kJobUidKey[] = "muster-job-uid-bin";

// With backup workers: the ranks whose pushes a step was made of; empty where that is not known.
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

// Rows, loss and correct of any message that has them.
template <class Message>
void set_sums(Message& message, const compute::LossSums& sums) {
  message.set_rows(sums.rows);
  message.set_loss(sums.loss);
  message.set_correct(sums.correct);
}

template <class Message>
compute::LossSums get_sums(const Message& message) {
  compute::LossSums sums;
  sums.rows = message.rows();
  sums.loss = message.loss();
  sums.correct = message.correct();
  return sums;
}

using EpochSumsMessages = google::protobuf::RepeatedPtrField<EpochSumsMessage>;
checkpoint::EpochSums from_messages(const EpochSumsMessages& messages);
void to_messages(const checkpoint::EpochSums& sums, EpochSumsMessages& messages);

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
