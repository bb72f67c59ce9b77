// Loaded into a program by LD_PRELOAD: its wall clock is off by as many seconds as the file
// $MUSTER_WALL_CLOCK says at the moment, as if somebody had set it. The monotonic clock goes on.

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

// By system calls: functions of the C library may ask for the time.
long seconds_off() {
  static const char* file = std::getenv("MUSTER_WALL_CLOCK");
  if (file == nullptr) return 0;
  const long fd = syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[32] = {};
  syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  return std::strtol(text, nullptr, 10);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, out);
  const bool is_wall_clock = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result == 0 && is_wall_clock) out->tv_sec += seconds_off();
  return static_cast<int>(result);
}

int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return result;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
