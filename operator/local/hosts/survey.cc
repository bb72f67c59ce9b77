#include "operator/local/hosts/survey.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "common/error.h"
#include "common/text/shorten.h"
#include "common/threads/pause.h"
#include "operator/local/hosts/each_host.h"
#include "operator/local/hosts/refusals.h"
#include "operator/local/hosts/session.h"

namespace muster::local {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kMostTime = std::chrono::seconds(30);
constexpr size_t kLongestAnswer = 1 << 20;
constexpr size_t kAtOnce = 256;

// Returns an address of IPv4 if the name has one, else of IPv6. Throws Unavailable.
std::string ip_of(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &found); error != 0) {
    throw Unavailable("expected an IP address, or a name that this machine knows, found \"" + name +
                      "\": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  const addrinfo* chosen = found;
  for (const addrinfo* one = found; one != nullptr && chosen->ai_family != AF_INET;
       one = one->ai_next)
    if (one->ai_family == AF_INET) chosen = one;
  char text[NI_MAXHOST];
  if (const int error = ::getnameinfo(chosen->ai_addr, chosen->ai_addrlen, text, sizeof text,
                                      nullptr, 0, NI_NUMERICHOST);
      error != 0)
    throw Unavailable("no address of " + name + " can be read: " + ::gai_strerror(error));
  return text;
}

bool is_loopback(const std::string& ip) {
  return ip.starts_with("127.") || ip == "::1";
}

void require_distinct(const std::vector<std::string>& ips, size_t i) {
  for (size_t other = 0; other < i; ++other) {
    if (ips[other] == ips[i])
      throw Unavailable("expected an address of its own, found " + ips[i] + " of an earlier host");
    if (is_loopback(ips[other]) != is_loopback(ips[i]) && !ips[other].empty())
      throw Unavailable(
          "expected an address that other hosts can reach (or loopback addresses for all hosts), "
          "found " +
          ips[i] + " beside " + ips[other]);
  }
}

struct Answer {
  std::string output, errors;
  bool is_whole = false;  // false: the time was over first
  int code = 0;
};

// Returns false at the end, and once `to` is too long.
bool read_some(const Descriptor& from, std::string& to) {
  return Session::read_some(from, to) && to.size() <= kLongestAnswer;
}

Answer ask_once(const std::vector<std::string>& command, std::string question,
                Clock::time_point until) {
  Session session(command, Session::Output::pipe);
  Answer answer;
  bool output_open = true, errors_open = true;
  while (output_open || errors_open) {
    const int left = milliseconds_until(until);
    if (left == 0) break;
    pollfd watched[] = {{output_open ? session.output().get() : -1, POLLIN, 0},
                        {errors_open ? session.errors().get() : -1, POLLIN, 0},
                        {session.input().get(), POLLOUT, 0}};
    if (::poll(watched, 3, left) <= 0) continue;
    if (watched[0].revents != 0) output_open = read_some(session.output(), answer.output);
    if (watched[1].revents != 0) errors_open = read_some(session.errors(), answer.errors);
    session.send(question);
    if (question.empty()) session.close_input();
  }
  answer.is_whole = !output_open;
  answer.code = session.end();
  return answer;
}

Answer ask(const std::vector<std::string>& command, const std::string& question) {
  const auto until = Clock::now() + kMostTime;
  for (Refusals refusals;;) {
    Answer answer = ask_once(command, question, until);
    if (!answer.output.empty()) return answer;
    const auto pause = refusals.pause_after(answer.code, last_line(answer.errors));
    if (!pause || Clock::now() + *pause > until) return answer;
    std::this_thread::sleep_for(*pause);
  }
}

// Throws Invalid or Unavailable with the reason if the host cannot be used.
HostFacts facts_of(const Answer& answer) {
  const std::string words = shown(last_line(answer.errors));
  const std::string ended = std::to_string(answer.code) + (words.empty() ? "" : ": " + words);
  if (answer.output.empty()) {
    throw Unavailable(answer.is_whole ? "ssh or `muster host survey` has ended with " + ended
                                      : "it has not answered within 30 s");
  }
  HostFacts facts;
  // The host's shell may have said something before.
  const std::string line = last_line(answer.output);
  try {
    const size_t begin = line.find("{\"protocol\"");
    facts = parse_host_facts(begin == std::string::npos ? line : line.substr(begin));
  } catch (const Invalid& error) {
    throw Unavailable(error.what() + std::string(" It said \"") + shown(line) +
                      "\", and ended with " + ended);
  }
  if (!facts.problem.empty()) throw Unavailable(shown(facts.problem));
  return facts;
}

}  // namespace

Survey survey(const HostsFile& file, const SurveyRequest& request) {
  const size_t count = file.hosts.size();
  std::vector<std::string> ips(count), unreachable(count);
  for (size_t i = 0; i < count; ++i) {
    try {
      ips[i] = ip_of(file.hosts[i].address);
      require_distinct(ips, i);
    } catch (const Unavailable& error) {
      unreachable[i] = error.what();
    }
  }
  std::vector<HostFacts> facts(count);
  const auto ask_one = [&](size_t i) {
    if (!unreachable[i].empty()) throw Unavailable(unreachable[i]);
    SurveyRequest own = request;
    own.address = ips[i];
    facts[i] = facts_of(ask(remote_command(file, file.hosts[i], "survey"), to_line(to_json(own))));
  };
  const auto reasons = for_each_host(count, kAtOnce, ask_one, [] {});
  Survey result;
  for (size_t i = 0; i < count; ++i) {
    if (!reasons[i].empty()) {
      result.notes.push_back(unusable(file.hosts[i], reasons[i]));
      continue;
    }
    Host host = file.hosts[i];
    if (host.slots == 0) host.slots = facts[i].cpus;
    result.usable.push_back({std::move(host), ips[i], std::move(facts[i])});
  }
  return result;
}

}  // namespace muster::local
