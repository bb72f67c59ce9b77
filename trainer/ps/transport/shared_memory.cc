#include "trainer/ps/transport/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "common/error.h"
#include "common/random.h"
#include "common/system/shared_memory.h"

namespace muster::ps {

namespace {
constexpr char kName[] = "muster-member";

std::byte* map_offered(const Descriptor& memory, size_t size) {
  try {
    return map_shared_memory(memory, size);
  } catch (const Unavailable& error) {
    throw Invalid(error.what());
  }
}

}  // namespace

MemberMemory::MemberMemory(SegmentShape shape, uint32_t spins) : spins_(spins) {
  view_.shape = shape;
  descriptor_ = make_shared_memory(kName, shape.size());
  view_.base = map_shared_memory(descriptor_, shape.size());
  fill_header();
}

MemberMemory::~MemberMemory() {
  munmap(view_.base, view_.shape.size());
}

void MemberMemory::renew() {
  Descriptor made = make_shared_memory(kName, view_.shape.size());
  map_shared_memory(made, view_.shape.size(), view_.base);
  descriptor_ = std::move(made);
  fill_header();
}

void MemberMemory::fill_header() {
  nonce_ = random_number();
  SegmentHeader& header = view_.header();
  header.magic = SegmentShape::kMagic;
  header.nonce = nonce_;
  header.floats = view_.shape.floats;
  header.shards = static_cast<uint32_t>(view_.shape.shards);
  header.spins = spins_;
}

SharedMemoryOffer MemberMemory::offer() const {
  SharedMemoryOffer offer;
  offer.set_pid(static_cast<uint32_t>(getpid()));
  offer.set_fd(static_cast<uint32_t>(descriptor_.get()));
  offer.set_nonce(nonce_);
  return offer;
}

OfferedMemory::OfferedMemory(const SharedMemoryOffer& offer, SegmentShape shape) {
  const Descriptor opened = open_shared_memory(kName, offer.pid(), offer.fd(), shape.size());
  std::byte* const base = map_offered(opened, shape.size());
  view_ = {base, shape};
  const SegmentHeader& header = view_.header();
  if (header.magic == SegmentShape::kMagic && header.nonce == offer.nonce() &&
      header.floats == shape.floats && header.shards == shape.shards)
    return;
  munmap(base, shape.size());
  throw Invalid("it is another process's, not the member's");
}

OfferedMemory::~OfferedMemory() {
  munmap(view_.base, view_.shape.size());
}

}  // namespace muster::ps
