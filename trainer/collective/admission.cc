#include "trainer/collective/admission.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace muster::collective {

namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr size_t kMostSilent = 256;

}  // namespace

// Returns whether the listener or a connection has something to read.
bool Admission::await(std::chrono::milliseconds most) {
  std::vector<pollfd> waiting{{listener_.get(), POLLIN, 0}};
  for (const Silent& one : silent_) waiting.push_back({one.socket.get(), POLLIN, 0});
  return poll(waiting.data(), waiting.size(), static_cast<int>(most.count())) > 0;
}

// When the list is full, the connection that has been silent for longest is dropped, one per call.
void Admission::accept_some() {
  if (silent_.size() == kMostSilent) silent_.pop_front();
  while (silent_.size() < kMostSilent) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    silent_.push_back({std::move(socket), Clock::now() + kPatience});
  }
}

std::optional<Admission::Admitted> Admission::next(std::chrono::milliseconds most) {
  const auto until = Clock::now() + most;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (!await(std::max(left, std::chrono::milliseconds(0)))) break;
    accept_some();
    for (auto one = silent_.begin(); one != silent_.end();) {
      Greeting greeting{};
      const ssize_t size = recv(one->socket.get(), &greeting, sizeof greeting, MSG_PEEK);
      if (size == sizeof greeting) {
        recv(one->socket.get(), &greeting, sizeof greeting, 0);
        Admitted admitted{std::move(one->socket), greeting};
        silent_.erase(one);
        return admitted;
      }
      const bool silent = size < 0 && (errno == EAGAIN || errno == EINTR);
      one = silent && Clock::now() < one->until ? one + 1 : silent_.erase(one);
    }
  } while (Clock::now() < until);
  return std::nullopt;
}

}  // namespace muster::collective
