#include "trainer/collective/admission.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "common/error.h"

namespace muster::collective {

namespace {

constexpr std::chrono::seconds kPatience{4};
constexpr ConnectionLimit::Most kMostSilent{.of_address = 128, .in_all = 256};

uint64_t number_of(const Stream& stream) {
  return static_cast<uint64_t>(stream.socket().get());
}

}  // namespace

Admission::Admission(Descriptor listener, const group::Identity& identity)
    : listener_(std::move(listener)), identity_(identity), limit_(kMostSilent) {}

// Returns whether the listener or a connection has something to read.
bool Admission::await(std::chrono::milliseconds most) {
  std::vector<pollfd> waiting{{listener_.get(), POLLIN, 0}};
  for (const Silent& one : silent_)
    waiting.push_back({one.stream.socket().get(), one.stream.awaited(), 0});
  return poll(waiting.data(), waiting.size(), static_cast<int>(most.count())) > 0;
}

// If there are too many connections, each call closes at most one, so that the others have time for
// their greeting.
void Admission::accept_some() {
  for (;;) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    const std::string host = peer_address(socket.get()).host;
    silent_.push_back(
        {Stream(std::move(socket), identity_, Stream::End::server), Clock::now() + kPatience});
    const auto excess = limit_.add(number_of(silent_.back().stream), host);
    if (!excess) continue;
    std::erase_if(silent_, [&](const Silent& one) { return number_of(one.stream) == *excess; });
    return;
  }
}

std::deque<Admission::Silent>::iterator Admission::forget(const std::deque<Silent>::iterator& one) {
  limit_.remove(number_of(one->stream));
  return silent_.erase(one);
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
          limit_.remove(number_of(one->stream));
          Admitted admitted{std::move(one->stream), one->greeting};
          silent_.erase(one);
          return admitted;
        }
      } catch (const Unavailable&) {
        ended = true;
      }
      one = ended ? forget(one) : one + 1;
    }
  } while (Clock::now() < until);
  return std::nullopt;
}

}  // namespace muster::collective
