#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/threads/doorbell.h"
#include "trainer/compute/placed.h"
#include "trainer/ps/shard/messages.h"

namespace muster::ps {

// The layout of the memory that a member shares with the shards of its host, and its headers.
//
//   SegmentHeader   written by the member before it offers the memory; the bell it waits at
//   Mailbox[shards] one request and its reply each
//   gradients       floats of the whole layout; a shard reads its range
//   parameters      floats of the whole layout; a shard writes its range
//
// A request: the member writes gradients and `request`, then rings `requests`. Its reply: the shard
// writes parameters and `reply`, then `answered`, and rings the member's bell. Before the reply the
// member does not access gradients and parameters; a shard never accesses them without a request.
// So a process that is killed while it writes has sent nothing.
//
// Neither side trusts the other: sizes come from the layout, never from the memory; headers are
// copied, then checked; the memory is sealed, so nobody can make it smaller.

// PushHeader and ReplyHeader as plain memory.
struct RequestBlock {
  uint64_t generation, step, sequence, ticket;
  uint32_t rank;
  uint32_t flags;  // 1: pull, 2: newest
  Contributors contributors;
  compute::LossSums sums;
};
struct ReplyBlock {
  uint64_t generation, step, sequence, ticket;
  uint32_t status;
  uint32_t flags;  // 1: has a ticket, 2: finished
  Contributors contributors;
  compute::LossSums sums;
  char message[256];
};

RequestBlock to_block(const PushHeader& header);
// Returns nothing if the sums are not plausible for a member.
std::optional<PushHeader> from_block(const RequestBlock& block);
ReplyBlock to_block(const ReplyHeader& header);
ReplyHeader from_block(const ReplyBlock& block);

struct Mailbox {
  alignas(64) Doorbell requests;
  RequestBlock request;
  alignas(64) uint32_t answered;  // number of requests, modulo 2^32
  ReplyBlock reply;
};

struct SegmentHeader {
  uint64_t magic;
  uint64_t nonce;
  uint64_t floats;
  uint32_t shards;
  uint32_t spins;  // useful spins before sleeping, by the member's view of its host
  alignas(64) Doorbell bell;
};

struct SegmentShape {
  static constexpr uint64_t kMagic = 0x314d48535253554d;  // "MUSRSHM1"

  size_t floats = 0;
  size_t shards = 0;
  // Where gradients and parameters are. In a GPU's memory they are one after the other.
  compute::Place place = compute::Place::host;

  size_t gradients_at() const;
  size_t parameters_at() const;
  size_t size() const;  // bytes, whole pages
};

// A mapping of the segment. Does not own the memory.
struct SegmentView {
  std::byte* base = nullptr;
  SegmentShape shape;
  float* at_gpu = nullptr;  // gradients and parameters, if they are in a GPU's memory

  SegmentHeader& header() const;
  Mailbox& mailbox(size_t shard) const;
  compute::PlacedFloats gradients() const;
  compute::PlacedFloats parameters() const;

 private:
  compute::PlacedFloats floats(size_t at, size_t index) const;
};

}  // namespace muster::ps
