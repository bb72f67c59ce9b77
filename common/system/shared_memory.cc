#include "common/system/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/error.h"
#include "common/system/system_words.h"

namespace muster {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string link_of(const std::string& path) {
  char text[256];
  const ssize_t length = readlink(path.c_str(), text, sizeof text);
  return length < 0 ? "" : std::string(text, static_cast<size_t>(length));
}

void check(int descriptor, size_t expected) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0)
    throw Invalid("it cannot be looked at: " + system_words(errno));
  if (static_cast<uint64_t>(status.st_size) != expected)
    throw Invalid("expected " + std::to_string(expected) + " bytes, found " +
                  std::to_string(status.st_size));
  if (const int seals = fcntl(descriptor, F_GET_SEALS); seals < 0 || (seals & kSeals) != kSeals)
    throw Invalid("expected memory sealed against resizing");
}

}  // namespace

Descriptor make_shared_memory(const std::string& name, size_t size) {
  Descriptor made(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made || fallocate(made.get(), 0, 0, static_cast<off_t>(size)) != 0 ||
      fcntl(made.get(), F_ADD_SEALS, kSeals) != 0)
    throw Unavailable("no shared memory of " + std::to_string(size) +
                      " bytes: " + system_words(errno));
  return made;
}

Descriptor open_shared_memory(const std::string& name, uint32_t pid, uint32_t fd, size_t size) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  if (link_of(path) != "/memfd:" + name + " (deleted)")
    throw Invalid("it is not on this host, or hidden from this process");
  Descriptor opened(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!opened) throw Invalid("it cannot be opened: " + system_words(errno));
  check(opened.get(), size);
  return opened;
}

std::byte* map_shared_memory(const Descriptor& memory, size_t size, std::byte* at) {
  const int fixed = at ? MAP_FIXED : 0;
  void* base =
      mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | fixed, memory.get(), 0);
  if (base == MAP_FAILED)
    throw Unavailable("shared memory cannot be mapped: " + system_words(errno));
  return static_cast<std::byte*>(base);
}

}  // namespace muster
