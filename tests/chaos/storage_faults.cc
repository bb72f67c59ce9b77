// Loaded into a trainer by LD_PRELOAD: makes the shared storage below $MUSTER_FAULTS_BELOW behave
// as the file $MUSTER_FAULTS says at the moment:
//   ""            as it is
//   "fail 100"    every call fails with EIO; with a smaller number that share of them does
//   "full"        what needs room fails with ENOSPC
//   "full NAME"   what makes something with NAME in its path does
//   "no rename"   nothing can be renamed (EPERM), as on some file systems over objects
//   "hidden NAME" no file with NAME in its path can be opened to be read (ENOENT), as where a name
//                 is not seen at once that is new
//   "stall"       calls wait until the file says something else
//   "slow 20"     every call takes 20 ms longer
// It stands in for a file server, for which a test would need privileges.

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum class Needs { nothing, room };

constexpr int kDescriptors = 4096;
std::atomic<bool> ours[kDescriptors];  // descriptors of files below the storage

bool is_below(const char* path) {
  static const char* below = std::getenv("MUSTER_FAULTS_BELOW");
  return below && path && std::strncmp(path, below, std::strlen(below)) == 0;
}

bool is_ours(int fd) {
  return fd >= 0 && fd < kDescriptors && ours[fd];
}

int note(int fd, bool below) {
  if (fd >= 0 && fd < kDescriptors) ours[fd] = below;
  return fd;
}

// By system calls, which nobody intercepts.
void read_mode(char (&mode)[32]) {
  static const char* file = std::getenv("MUSTER_FAULTS");
  mode[0] = 0;
  if (!file) return;
  const long fd = syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const long got = syscall(SYS_read, fd, mode, sizeof mode - 1);
  mode[got > 0 ? got : 0] = 0;
  syscall(SYS_close, fd);
}

bool by_chance(int percent) {
  static std::atomic<unsigned> calls{static_cast<unsigned>(getpid())};
  unsigned x = calls.fetch_add(1) * 2654435761u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return static_cast<int>(x % 100) < percent;
}

// "full", or "full NAME" and NAME is in the path.
bool is_full(const char* mode, const char* path) {
  if (std::strncmp(mode, "full", 4) != 0) return false;
  return mode[4] == 0 || (path && std::strstr(path, mode + 5));
}

// Sleeps less than a second.
void sleep_for(int milliseconds) {
  const timespec time{0, milliseconds * 1'000'000L};
  syscall(SYS_nanosleep, &time, nullptr);
}

// False: the call fails, and errno says how.
bool may_pass(Needs needs, const char* path = nullptr) {
  for (;;) {
    char mode[32];
    read_mode(mode);
    if (std::strncmp(mode, "stall", 5) != 0) {
      if (std::strncmp(mode, "fail ", 5) == 0 && by_chance(std::atoi(mode + 5))) {
        errno = EIO;
        return false;
      }
      if (needs == Needs::room && is_full(mode, path)) {
        errno = ENOSPC;
        return false;
      }
      if (std::strncmp(mode, "slow ", 5) == 0) sleep_for(std::atoi(mode + 5));
      return true;
    }
    sleep_for(10);
  }
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// Whether it is a file that can be written, but is not there for a reader; then errno says so.
bool is_hidden(const char* path, int flags) {
  char mode[32];
  read_mode(mode);
  if (std::strncmp(mode, "hidden ", 7) != 0 || !std::strstr(path, mode + 7)) return false;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_DIRECTORY)) return false;
  errno = ENOENT;
  return true;
}

Needs needs_of(int flags) {
  return flags & (O_CREAT | O_TMPFILE) ? Needs::room : Needs::nothing;
}

}  // namespace

#define NEXT(name) static const auto real = next<decltype(&::name)>(#name)

extern "C" {

#define OPEN(name)                                                             \
  int name(const char* path, int flags, ...) {                                 \
    static const auto real = next<int (*)(const char*, int, mode_t)>(#name);   \
    va_list more;                                                              \
    va_start(more, flags);                                                     \
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0; \
    va_end(more);                                                              \
    const bool below = is_below(path);                                         \
    if (below && !may_pass(needs_of(flags), path)) return -1;                  \
    if (below && is_hidden(path, flags)) return -1;                            \
    return note(real(path, flags, mode), below);                               \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                              \
  int name(int folder, const char* path, int flags, ...) {                        \
    static const auto real = next<int (*)(int, const char*, int, mode_t)>(#name); \
    va_list more;                                                                 \
    va_start(more, flags);                                                        \
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;    \
    va_end(more);                                                                 \
    const bool below = is_below(path) || is_ours(folder);                         \
    if (below && !may_pass(needs_of(flags), path)) return -1;                     \
    return note(real(folder, path, flags, mode), below);                          \
  }
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
  NEXT(close);
  note(fd, false);
  return real(fd);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  NEXT(write);
  if (is_ours(fd) && !may_pass(Needs::room)) return -1;
  return real(fd, bytes, count);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  NEXT(writev);
  if (is_ours(fd) && !may_pass(Needs::room)) return -1;
  return real(fd, parts, count);
}

ssize_t read(int fd, void* bytes, size_t count) {
  NEXT(read);
  if (is_ours(fd) && !may_pass(Needs::nothing)) return -1;
  return real(fd, bytes, count);
}

ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  NEXT(pread);
  if (is_ours(fd) && !may_pass(Needs::nothing)) return -1;
  return real(fd, bytes, count, offset);
}

int fsync(int fd) {
  NEXT(fsync);
  if (is_ours(fd) && !may_pass(Needs::room)) return -1;
  return real(fd);
}

int rename(const char* from, const char* to) {
  NEXT(rename);
  if (is_below(to) && !may_pass(Needs::nothing)) return -1;
  char mode[32];
  read_mode(mode);
  if (is_below(to) && std::strcmp(mode, "no rename") == 0) {
    errno = EPERM;
    return -1;
  }
  return real(from, to);
}

int mkdir(const char* path, mode_t mode) {
  NEXT(mkdir);
  if (is_below(path) && !may_pass(Needs::room, path)) return -1;
  return real(path, mode);
}

int unlink(const char* path) {
  NEXT(unlink);
  if (is_below(path) && !may_pass(Needs::nothing)) return -1;
  return real(path);
}

int unlinkat(int folder, const char* path, int flags) {
  NEXT(unlinkat);
  if ((is_below(path) || is_ours(folder)) && !may_pass(Needs::nothing)) return -1;
  return real(folder, path, flags);
}

int stat(const char* path, struct stat* out) {
  NEXT(stat);
  if (is_below(path) && !may_pass(Needs::nothing)) return -1;
  return real(path, out);
}

DIR* opendir(const char* path) {
  NEXT(opendir);
  if (is_below(path) && !may_pass(Needs::nothing)) return nullptr;
  return real(path);
}

FILE* fopen(const char* path, const char* mode) {
  NEXT(fopen);
  if (is_below(path) && !may_pass(*mode == 'r' ? Needs::nothing : Needs::room, path))
    return nullptr;
  return real(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  NEXT(fopen64);
  if (is_below(path) && !may_pass(*mode == 'r' ? Needs::nothing : Needs::room, path))
    return nullptr;
  return real(path, mode);
}

}  // extern "C"
