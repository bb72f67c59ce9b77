#include "trainer/ps/transport/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "common/error.h"
#include "common/random.h"
#include "common/system/shared_memory.h"

namespace muster::ps {

using compute::Place;

namespace {
constexpr char kName[] = "muster-member";

// Bytes of gradients and parameters on a GPU. CUDA shares whole blocks of 2 MiB, which must not
// contain anything else.
size_t gpu_bytes(size_t floats) {
  constexpr size_t kShared = 2 << 20;
  return (2 * floats * sizeof(float) / kShared + 1) * kShared;
}

std::byte* map_offered(const Descriptor& memory, size_t size) {
  try {
    return map_shared_memory(memory, size);
  } catch (const Unavailable& error) {
    throw Invalid(error.what());
  }
}

}  // namespace

MemberMemory::MemberMemory(SegmentShape shape, uint32_t spins, compute::cuda::Gpu* gpu)
    : gpu_(gpu), spins_(spins) {
  view_.shape = shape;
  if (gpu_) view_.shape.place = Place::gpu;
  renew_gpu_memory();
  descriptor_ = make_shared_memory(kName, view_.shape.size());
  view_.base = map_shared_memory(descriptor_, view_.shape.size());
  fill_header();
}

MemberMemory::~MemberMemory() {
  munmap(view_.base, view_.shape.size());
}

void MemberMemory::renew() {
  if (!std::exchange(offered_, false)) return;  // no shard has it
  Descriptor made = make_shared_memory(kName, view_.shape.size());
  renew_gpu_memory();
  map_shared_memory(made, view_.shape.size(), view_.base);
  descriptor_ = std::move(made);
  fill_header();
}

void MemberMemory::renew_gpu_memory() {
  if (!gpu_) return;
  // A shard that was declared lost may not have closed the last block yet. The driver keeps earlier
  // blocks as long as they are open.
  before_.reset();
  auto made = std::make_unique<compute::cuda::GpuArray<float>>(
      *gpu_, static_cast<int64_t>(gpu_bytes(view_.shape.floats) / sizeof(float)));
  gpu_offer_ = gpu_->offer(made->data());
  before_ = std::exchange(gpu_memory_, std::move(made));
  view_.at_gpu = gpu_memory_->data();
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
  offered_ = true;
  SharedMemoryOffer offer;
  offer.set_pid(static_cast<uint32_t>(getpid()));
  offer.set_fd(static_cast<uint32_t>(descriptor_.get()));
  offer.set_nonce(nonce_);
  offer.set_gpu_memory(gpu_offer_);
  return offer;
}

OfferedMemory::OfferedMemory(const SharedMemoryOffer& offer, SegmentShape shape,
                             compute::cuda::Gpu* gpu)
    : gpu_(gpu) {
  shape.place = offer.gpu_memory().empty() ? Place::host : Place::gpu;
  if (shape.place == Place::gpu && !gpu)
    throw Invalid("it is a GPU's, and the shard is not kept on a GPU");
  const Descriptor opened = open_shared_memory(kName, offer.pid(), offer.fd(), shape.size());
  std::byte* const base = map_offered(opened, shape.size());
  view_ = {base, shape, nullptr};
  const SegmentHeader& header = view_.header();
  try {
    if (header.magic != SegmentShape::kMagic || header.nonce != offer.nonce() ||
        header.floats != shape.floats || header.shards != shape.shards)
      throw Invalid("it is another process's, not the member's");
    if (shape.place == Place::gpu)
      view_.at_gpu = static_cast<float*>(gpu->open(offer.gpu_memory(), gpu_bytes(shape.floats)));
  } catch (...) {
    munmap(base, shape.size());
    throw;
  }
}

OfferedMemory::~OfferedMemory() {
  if (view_.at_gpu) gpu_->close(view_.at_gpu);
  munmap(view_.base, view_.shape.size());
}

}  // namespace muster::ps
