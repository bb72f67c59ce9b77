#include "trainer/ps/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/descriptor.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/random.h"

namespace muster::ps {

namespace {

constexpr char kName[] = "muster-member";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string reason() {
  return std::generic_category().message(errno);
}

// Memory that exists, all of it, and keeps its size: touching it cannot fail later.
Descriptor make_segment(size_t size) {
  Descriptor made(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made || fallocate(made.get(), 0, 0, static_cast<off_t>(size)) != 0 ||
      fcntl(made.get(), F_ADD_SEALS, kSeals) != 0)
    throw Unavailable("no shared memory of " + std::to_string(size) + " bytes: " + reason());
  return made;
}

std::string link_of(const std::string& path) {
  char text[256];
  const ssize_t length = readlink(path.c_str(), text, sizeof text);
  return length < 0 ? "" : std::string(text, static_cast<size_t>(length));
}

// Looks what the descriptor is before opening it: of a stranger's numbers, some are devices.
Descriptor open_offered(const SharedMemoryOffer& offer) {
  const std::string path =
      "/proc/" + std::to_string(offer.pid()) + "/fd/" + std::to_string(offer.fd());
  if (link_of(path) != std::string("/memfd:") + kName + " (deleted)")
    throw Invalid("it is not on this host, or hidden from this process");
  Descriptor opened(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!opened) throw Invalid("it cannot be opened: " + reason());
  return opened;
}

void check(int descriptor, size_t expected) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) throw Invalid("it cannot be looked at: " + reason());
  if (static_cast<uint64_t>(status.st_size) != expected)
    throw Invalid("expected " + std::to_string(expected) + " bytes, found " +
                  std::to_string(status.st_size));
  if (const int seals = fcntl(descriptor, F_GET_SEALS); seals < 0 || (seals & kSeals) != kSeals)
    throw Invalid("expected memory sealed against resizing");
}

}  // namespace

MemberMemory::MemberMemory(SegmentShape shape, uint32_t spins) : spins_(spins) {
  view_.shape = shape;
  Descriptor made = make_segment(shape.size());
  void* base =
      mmap(nullptr, shape.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, made.get(), 0);
  if (base == MAP_FAILED) throw Unavailable("shared memory cannot be mapped: " + reason());
  view_.base = static_cast<std::byte*>(base);
  descriptor_ = std::move(made);
  fill_header();
}

MemberMemory::~MemberMemory() {
  munmap(view_.base, view_.shape.size());
}

void MemberMemory::renew() {
  Descriptor made = make_segment(view_.shape.size());
  if (mmap(view_.base, view_.shape.size(), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_POPULATE | MAP_FIXED, made.get(), 0) == MAP_FAILED)
    throw Unavailable("shared memory cannot be mapped: " + reason());
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
  const Descriptor opened = open_offered(offer);
  check(opened.get(), shape.size());
  void* base = mmap(nullptr, shape.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                    opened.get(), 0);
  if (base == MAP_FAILED) throw Invalid("it cannot be mapped: " + reason());
  view_ = {static_cast<std::byte*>(base), shape};
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

bool shared_memory_wanted() {
  const char* text = std::getenv("MUSTER_SHARED_MEMORY");
  const std::string_view value = text ? text : "";
  if (value == "0") return false;
  if (value.empty() || value == "1") return true;
  throw Invalid("MUSTER_SHARED_MEMORY: expected 0 or 1, found \"" + std::string(value) + "\"",
                kBadConfig);
}

}  // namespace muster::ps
