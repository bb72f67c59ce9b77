#include "trainer/ps/transport/segment.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace muster::ps {

using compute::Place;

namespace {

constexpr size_t kPage = 4096;

static_assert(std::is_trivially_copyable_v<SegmentHeader> && sizeof(SegmentHeader) <= kPage);
static_assert(std::is_trivially_copyable_v<Mailbox>);

size_t whole_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

RequestBlock to_block(const PushHeader& header) {
  RequestBlock block{};
  block.generation = header.generation;
  block.step = header.step;
  block.sequence = header.sequence;
  block.ticket = header.ticket;
  block.rank = header.rank;
  block.flags = (header.pull ? 1u : 0u) | (header.newest ? 2u : 0u);
  block.contributors = header.contributors;
  block.sums = header.sums;
  return block;
}

std::optional<PushHeader> from_block(const RequestBlock& block) {
  if (!block.sums.plausible()) return std::nullopt;
  PushHeader header;
  header.generation = block.generation;
  header.step = block.step;
  header.sequence = block.sequence;
  header.ticket = block.ticket;
  header.rank = block.rank;
  header.pull = (block.flags & 1) != 0;
  header.newest = (block.flags & 2) != 0;
  header.contributors = block.contributors;
  header.sums = block.sums;
  return header;
}

ReplyBlock to_block(const ReplyHeader& header) {
  ReplyBlock block{};
  block.generation = header.generation;
  block.step = header.step;
  block.sequence = header.sequence;
  block.ticket = header.ticket.value_or(0);
  block.status = static_cast<uint32_t>(header.status);
  block.flags = (header.ticket ? 1u : 0u) | (header.finished ? 2u : 0u);
  block.contributors = header.contributors;
  block.sums = header.sums;
  std::memcpy(block.message, header.message.data(),
              std::min(header.message.size(), sizeof block.message - 1));
  return block;
}

ReplyHeader from_block(const ReplyBlock& block) {
  ReplyHeader header;
  header.status = block.status == static_cast<uint32_t>(Status::ok)           ? Status::ok
                  : block.status == static_cast<uint32_t>(Status::superseded) ? Status::superseded
                                                                              : Status::rejected;
  header.message.assign(block.message, strnlen(block.message, sizeof block.message));
  header.generation = block.generation;
  header.step = block.step;
  header.sequence = block.sequence;
  header.sums = block.sums;
  if ((block.flags & 1) != 0) header.ticket = block.ticket;
  header.finished = (block.flags & 2) != 0;
  header.contributors = block.contributors;
  return header;
}

size_t SegmentShape::gradients_at() const {
  return kPage + whole_pages(shards * sizeof(Mailbox));
}
size_t SegmentShape::parameters_at() const {
  return gradients_at() + (place == Place::host ? whole_pages(floats * sizeof(float)) : 0);
}
size_t SegmentShape::size() const {
  return 2 * parameters_at() - gradients_at();
}

SegmentHeader& SegmentView::header() const {
  return *reinterpret_cast<SegmentHeader*>(base);
}
Mailbox& SegmentView::mailbox(size_t shard) const {
  return reinterpret_cast<Mailbox*>(base + kPage)[shard];
}
compute::PlacedFloats SegmentView::gradients() const {
  return floats(shape.gradients_at(), 0);
}
compute::PlacedFloats SegmentView::parameters() const {
  return floats(shape.parameters_at(), shape.floats);
}

// The floats are at byte `at` of the segment, or at float `index` of the GPU's memory.
compute::PlacedFloats SegmentView::floats(size_t at, size_t index) const {
  float* const address =
      shape.place == Place::host ? reinterpret_cast<float*>(base + at) : at_gpu + index;
  return {shape.place, address, shape.floats};
}

}  // namespace muster::ps
