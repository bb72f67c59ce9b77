#include "trainer/loop/checkpoint_requests.h"

#include <chrono>
#include <fstream>

#include "common/checkpoint_request.h"
#include "common/mutex.h"

namespace muster::loop {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{500};
constexpr std::chrono::seconds kAskAgain{30};

// Returns "" for a file that cannot be read: it is looked at again soon.
std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kLongestRequest + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
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
