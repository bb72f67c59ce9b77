#include "trainer/collective/admission.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "common/error.h"

namespace muster::collective {

namespace {

constexpr std::chrono::seconds kPatience{4};
constexpr size_t kMostSilent = 256;

}  // namespace

// Returns whether the listener or a connection has something to read.
bool Admission::await(std::chrono::milliseconds most) {
  std::vector<pollfd> waiting{{listener_.get(), POLLIN, 0}};
  for (const Silent& one : silent_)
    waiting.push_back({one.stream.socket().get(), one.stream.awaited(), 0});
  return poll(waiting.data(), waiting.size(), static_cast<int>(most.count())) > 0;
}

// When the list is full, the connection that has been silent for longest is dropped, one per call.
void Admission::accept_some() {
  if (silent_.size() == kMostSilent) silent_.pop_front();
  while (silent_.size() < kMostSilent) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    silent_.push_back(
        {Stream(std::move(socket), identity_, Stream::End::server), Clock::now() + kPatience});
  }
}

// Returns whether the whole greeting has come. Throws Unavailable once it cannot come any more.
bool Admission::hear(Silent& one) {
  if (!one.stream.shake_hands()) return false;
  iovec rest{reinterpret_cast<std::byte*>(&one.greeting) + one.greeted,
             sizeof one.greeting - one.greeted};
  one.greeted += one.stream.read({&rest, 1});
  return one.greeted == sizeof one.greeting;
}

std::optional<Admission::Admitted> Admission::next(std::chrono::milliseconds most) {
  const auto until = Clock::now() + most;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (!await(std::max(left, std::chrono::milliseconds(0)))) break;
    accept_some();
    for (auto one = silent_.begin(); one != silent_.end();) {
      bool ended = Clock::now() >= one->until;
      try {
        if (hear(*one)) {
          Admitted admitted{std::move(one->stream), one->greeting};
          silent_.erase(one);
          return admitted;
        }
      } catch (const Unavailable&) {
        ended = true;
      }
      one = ended ? silent_.erase(one) : one + 1;
    }
  } while (Clock::now() < until);
  return std::nullopt;
}

}  // namespace muster::collective
