#include "trainer/loop/checkpoint_requests.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "common/job/checkpoint_request.h"
#include "common/system/descriptor.h"
#include "common/threads/mutex.h"

namespace muster::loop {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{500};
constexpr std::chrono::seconds kAskAgain{30};

// Returns "" for a path that cannot be read or is not a file; the caller looks again soon.
std::string read(const std::filesystem::path& file) {
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat what {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &what) != 0 || !S_ISREG(what.st_mode))
    return "";
  std::string text(kLongestRequest + 1, '\0');
  const ssize_t bytes = ::pread(descriptor.get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, bytes)));
  return counted_request(std::move(text));
}

}  // namespace

CheckpointRequests::CheckpointRequests(std::filesystem::path file,
                                       std::function<void(const std::string& request)> ask)
    : file_(std::move(file)),
      ask_(std::move(ask)),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

void CheckpointRequests::watch(const std::stop_token& stop) const {
  using Clock = std::chrono::steady_clock;
  Mutex mutex;
  StoppableConditionVariable never;
  MutexLock lock(mutex);
  std::string asked;
  Clock::time_point again;
  while (!stop.stop_requested()) {
    const std::string text = read(file_);
    const Clock::time_point now = Clock::now();
    if (!text.empty() && (text != asked || now >= again)) {
      ask_(text);
      asked = text;
      again = now + kAskAgain;
    }
    never.wait_for(lock, stop, kBetweenLooks, [] { return false; });
  }
}

}  // namespace muster::loop
