#include "operator/local/hosts/each_host.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "common/text/shorten.h"
#include "common/threads/mutex.h"
#include "common/threads/pause.h"
#include "operator/local/hosts/refusals.h"

namespace muster::local {

namespace {

constexpr auto kMeanwhileEvery = std::chrono::milliseconds(50);
constexpr auto kLastWordsWithin = std::chrono::seconds(2);
constexpr size_t kLongestWords = 600;

std::string last_words(Session& session) {
  const auto until = std::chrono::steady_clock::now() + kLastWordsWithin;
  std::string words;
  while (const int left = milliseconds_until(until)) {
    pollfd watched{session.errors().get(), POLLIN, 0};
    if (::poll(&watched, 1, left) <= 0) continue;
    if (!Session::read_some(session.errors(), words)) break;
  }
  return words;
}

// Counts the threads that still work.
class Working {
 public:
  explicit Working(size_t threads) : threads_(threads) {}

  void end_one() {
    const MutexLock lock(mutex_);
    --threads_;
    changed_.notify_one();
  }
  // Waits a short time for the next thread to end. Returns whether any thread still works.
  bool wait() {
    MutexLock lock(mutex_);
    if (threads_ > 0) changed_.wait_for(lock, kMeanwhileEvery);
    return threads_ > 0;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  size_t threads_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<std::string> for_each_host(size_t count, size_t at_once,
                                       const std::function<void(size_t)>& work,
                                       const std::function<void()>& meanwhile) {
  ::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> reasons(count);
  const size_t threads_wanted = std::min(at_once, count);
  std::atomic<size_t> next{0};
  Working working(threads_wanted);
  const auto take_some = [&] {
    for (size_t i; (i = next++) < count;) {
      try {
        work(i);
      } catch (const std::exception& error) {
        reasons[i] = shown(error.what());
      }
    }
    working.end_one();
  };
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < threads_wanted; ++i) threads.emplace_back(take_some);
  while (working.wait()) meanwhile();
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

void talk_to_host(const std::vector<std::string>& command, const std::string& action,
                  const std::function<void(Session&, CopyWire&)>& talk) {
  for (Refusals refusals;;) {
    Session session(command, Session::Output::pipe);
    CopyWire wire(session.output().get(), session.input().get());
    try {
      talk(session, wire);
      return;
    } catch (const BrokenWire& error) {
      session.close_input();
      const std::string words = last_line(last_words(session));
      const int code = session.end();
      const auto pause = wire.has_heard() ? std::nullopt : refusals.pause_after(code, words);
      if (!pause) {
        throw Unavailable(error.what() + std::string("; ssh or ") + action + " has ended with " +
                          std::to_string(code) + (words.empty() ? "" : ": " + words));
      }
      std::this_thread::sleep_for(*pause);
    }
  }
}

}  // namespace muster::local
