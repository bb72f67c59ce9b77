#include "operator/local/hosts/each_host.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "common/pause.h"
#include "common/shorten.h"

namespace muster::local {

namespace {

constexpr size_t kAtOnce = 8;
constexpr auto kMeanwhileEvery = std::chrono::milliseconds(50);
constexpr auto kLastWordsWithin = std::chrono::seconds(2);
constexpr size_t kLongestWords = 600;

std::string last_words(Session& session) {
  const auto until = std::chrono::steady_clock::now() + kLastWordsWithin;
  std::string words;
  while (const int left = milliseconds_until(until)) {
    pollfd watched{session.errors().get(), POLLIN, 0};
    if (::poll(&watched, 1, left) <= 0) continue;
    char bytes[4096];
    const ssize_t got = ::read(session.errors().get(), bytes, sizeof bytes);
    if (got == 0) break;
    if (got > 0) words.append(bytes, static_cast<size_t>(got));
  }
  return words;
}

}  // namespace

std::vector<std::string> for_each_host(size_t count, const std::function<void(size_t)>& work,
                                       const std::function<void()>& meanwhile) {
  ::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> reasons(count);
  std::atomic<size_t> next{0}, running{std::min(kAtOnce, count)};
  const auto take_some = [&] {
    for (size_t i; (i = next++) < count;) {
      try {
        work(i);
      } catch (const std::exception& error) {
        reasons[i] = shown(error.what());
      }
    }
    --running;
  };
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < std::min(kAtOnce, count); ++i) threads.emplace_back(take_some);
  while (running > 0) {
    meanwhile();
    std::this_thread::sleep_for(kMeanwhileEvery);
  }
  return reasons;
}

std::string unusable(const Host& host, const std::string& why) {
  return "the host " + host.name + " is not used: " + why;
}

std::string shown(const std::string& words) {
  std::string text = shorten(words, kLongestWords);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

Unavailable broken_off(const BrokenWire& error, Session& session, const std::string& action) {
  session.close_input();
  const std::string words = last_line(last_words(session));
  return Unavailable(error.what() + std::string("; ssh or ") + action + " has ended with " +
                     std::to_string(session.end()) + (words.empty() ? "" : ": " + words));
}

}  // namespace muster::local
