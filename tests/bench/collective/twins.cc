#include "tests/bench/collective/twins.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

namespace muster::bench {

namespace {

constexpr int kLooks = 10000;  // before the core is offered to others

double now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

Meeting& shared_meeting() {
  void* const memory =
      ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to meet in");
  return *new (memory) Meeting;
}

[[noreturn]] void run_second(const std::function<double(int, Meeting&)>& work, Meeting& meeting) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    work(1, meeting);
  } catch (const std::exception& error) {
    fmt::print(stderr, "the second process: {}\n", error.what());
    ::kill(::getppid(), SIGTERM);  // it would wait for us
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

void Meeting::barrier() {
  const unsigned mine = arrived_.fetch_add(1, std::memory_order_acq_rel);
  const unsigned all = mine / kTwins * kTwins + kTwins;
  for (int looks = 1; arrived_.load(std::memory_order_acquire) < all; ++looks)
    if (looks % kLooks == 0) ::sched_yield();
}

std::array<double, Meeting::kTwins> Meeting::all(int twin, double value) {
  values_[static_cast<size_t>(twin)] = value;
  barrier();
  const auto found = values_;
  barrier();
  return found;
}

double Meeting::greatest(int twin, double value) {
  return std::ranges::max(all(twin, value));
}

double Meeting::mean(int twin, double value) {
  const auto found = all(twin, value);
  return (found[0] + found[1]) / kTwins;
}

std::string Meeting::other(int twin, const std::string& text) {
  if (text.size() > kText) throw std::runtime_error("too much to say");
  std::memcpy(text_[twin], text.data(), text.size());
  size_[twin] = text.size();
  barrier();
  const int from = 1 - twin;
  std::string found(text_[from], size_[from]);
  barrier();
  return found;
}

double in_twins(const std::function<double(int, Meeting&)>& work) {
  Meeting& meeting = shared_meeting();
  const pid_t second = ::fork();
  if (second < 0) throw std::runtime_error("no second process");
  if (second == 0) run_second(work, meeting);
  const double answer = work(0, meeting);
  int status = 0;
  if (::waitpid(second, &status, 0) != second || status != 0)
    throw std::runtime_error("the second process failed");
  ::munmap(&meeting, sizeof meeting);
  return answer;
}

double median_seconds(int twin, Meeting& meeting, size_t repeats, const Side& side) {
  std::vector<double> times;
  for (size_t i = 0; i < repeats / 5 + repeats; ++i) {
    side.prepare();
    meeting.barrier();
    const double begin = now();
    side.call();
    const double slowest = meeting.greatest(twin, now() - begin);
    if (i >= repeats / 5) times.push_back(slowest);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace muster::bench
