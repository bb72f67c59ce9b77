#include "tests/bench/ps/limits.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/threads/cpu_budget.h"

namespace muster::bench {

namespace {

constexpr double kSeconds = 3;
constexpr size_t kCall = 1 << 20;

double now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

void copy(char* to, const char* from, size_t bytes, int threads) {
  const size_t part = bytes / static_cast<size_t>(threads);
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) {
    const size_t at = part * static_cast<size_t>(i);
    others.emplace_back([=] { std::memcpy(to + at, from + at, part); });
  }
  std::memcpy(to, from, part);
}

void move_all(ssize_t (*call)(int, char*, size_t), int fd, std::vector<char>& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t moved = call(fd, bytes.data() + done, std::min(kCall, bytes.size() - done));
    if (moved <= 0) throw std::runtime_error("the connection broke");
    done += static_cast<size_t>(moved);
  }
}

void send_all(int fd, std::vector<char>& bytes) {
  move_all([](int to, char* at, size_t n) { return ::send(to, at, n, MSG_NOSIGNAL); }, fd, bytes);
}

void receive_all(int fd, std::vector<char>& bytes) {
  move_all([](int from, char* at, size_t n) { return ::recv(from, at, n, 0); }, fd, bytes);
}

// Takes as much as it gives back, for as long as it is asked.
[[noreturn]] void serve(int listener, size_t bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int fd = ::accept(listener, nullptr, nullptr);
  std::vector<char> buffer(bytes);
  try {
    for (;;) {
      receive_all(fd, buffer);
      send_all(fd, buffer);
    }
  } catch (const std::runtime_error&) {
    _exit(0);
  }
}

}  // namespace

double median_seconds(const std::function<void()>& call) {
  for (int i = 0; i < 2; ++i) call();
  std::vector<double> times;
  for (const double begin = now(); now() < begin + kSeconds || times.size() < 5;) {
    const double before = now();
    call();
    times.push_back(now() - before);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double memcpy_seconds(size_t bytes) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  double best = 1e9;
  for (int threads = 1; threads <= cpu_budget(); threads *= 2)
    best =
        std::min(best, median_seconds([&] { copy(to.data(), from.data(), from.size(), threads); }));
  return 4 * best;
}

double tcp_seconds(size_t bytes) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no port to listen at");
  const pid_t server = ::fork();
  if (server == 0) serve(listener, bytes);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0)
    throw std::runtime_error("the server does not answer");
  std::vector<char> buffer(bytes, 1);
  const double seconds = median_seconds([&] {
    send_all(fd, buffer);
    receive_all(fd, buffer);
  });
  ::kill(server, SIGKILL);
  ::close(fd);
  ::close(listener);
  return seconds;
}

}  // namespace muster::bench
