#include "operator/local/hosts/survey.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>

#include "common/error.h"
#include "common/pause.h"
#include "common/shorten.h"
#include "operator/local/hosts/each_host.h"
#include "operator/local/hosts/session.h"

namespace muster::local {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kMostTime = std::chrono::seconds(30);
constexpr size_t kLongestAnswer = 1 << 20;

// Throws Unavailable.
std::string ip_of(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.c_str(), nullptr, &hints, &found); error != 0) {
    throw Unavailable("expected an IPv4 address, or a name that this machine knows, found \"" +
                      address + "\": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  char text[INET_ADDRSTRLEN];
  const auto& ip = reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr;
  return ::inet_ntop(AF_INET, &ip, text, sizeof text);
}

void require_distinct(const std::vector<std::string>& ips, size_t i) {
  for (size_t other = 0; other < i; ++other) {
    if (ips[other] == ips[i])
      throw Unavailable("expected an address of its own, found " + ips[i] + " of an earlier host");
    if (ips[other].starts_with("127.") != ips[i].starts_with("127.") && !ips[other].empty())
      throw Unavailable("expected an address that other hosts reach, or none that they do, found " +
                        ips[i] + " beside " + ips[other]);
  }
}

// One host is asked this, and has said so much so far.
struct Question {
  Question(const HostsFile& file, const Host& host, std::string text)
      : session(remote_command(file, host, "survey"), Session::Output::pipe),
        unsent(std::move(text)) {}

  void read(const Descriptor& from, std::string& to, bool& open) {
    char bytes[4096];
    const ssize_t got = ::read(from.get(), bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0 || to.size() > kLongestAnswer) open = false;
    if (got > 0) to.append(bytes, static_cast<size_t>(got));
  }

  Session session;
  std::string unsent;
  std::string answer, errors;
  bool answer_open = true, errors_open = true;
};

void converse(std::vector<std::unique_ptr<Question>>& questions) {
  const auto until = Clock::now() + kMostTime;
  while (true) {
    std::vector<pollfd> watched;
    for (const auto& question : questions) {
      if (!question) continue;
      const auto watch = [&](bool open, const Descriptor& descriptor, short events) {
        watched.push_back({open ? descriptor.get() : -1, events, 0});
      };
      watch(question->answer_open, question->session.output(), POLLIN);
      watch(question->errors_open, question->session.errors(), POLLIN);
      watch(true, question->session.input(), POLLOUT);
    }
    bool any_open = false;
    for (const auto& question : questions)
      any_open |= question && (question->answer_open || question->errors_open);
    const int left = milliseconds_until(until);
    if (!any_open || left == 0) return;
    if (::poll(watched.data(), watched.size(), left) <= 0) continue;
    size_t at = 0;
    for (const auto& question : questions) {
      if (!question) continue;
      Question& asked = *question;
      if (watched[at].revents != 0)
        asked.read(asked.session.output(), asked.answer, asked.answer_open);
      if (watched[at + 1].revents != 0)
        asked.read(asked.session.errors(), asked.errors, asked.errors_open);
      asked.session.send(asked.unsent);
      if (asked.unsent.empty()) asked.session.close_input();
      at += 3;
    }
  }
}

// Throws Invalid or Unavailable with the reason if the host cannot be used.
HostFacts facts_of(Question& question) {
  const bool silent = question.answer_open;
  const int code = question.session.end();
  if (question.answer.empty()) {
    const std::string words = shown(last_line(question.errors));
    throw Unavailable(silent ? "it has not answered within 30 s"
                             : "ssh or `muster host survey` has ended with " +
                                   std::to_string(code) + (words.empty() ? "" : ": " + words));
  }
  HostFacts facts;
  try {
    // The host's shell may have said something before.
    const std::string line = last_line(question.answer);
    const size_t begin = line.find("{\"protocol\"");
    facts = parse_host_facts(begin == std::string::npos ? line : line.substr(begin));
  } catch (const Invalid& error) {
    const std::string words = shown(last_line(question.errors));
    throw Unavailable(error.what() + std::string(" It said \"") +
                      shown(last_line(question.answer)) + "\", and ended with " +
                      std::to_string(code) + (words.empty() ? "" : ": " + words));
  }
  if (!facts.problem.empty()) throw Unavailable(shown(facts.problem));
  return facts;
}

}  // namespace

Survey survey(const HostsFile& file, SurveyRequest request) {
  ::signal(SIGPIPE, SIG_IGN);
  std::vector<std::unique_ptr<Question>> questions;
  std::vector<std::string> ips, reasons(file.hosts.size());
  for (size_t i = 0; i < file.hosts.size(); ++i) {
    questions.push_back(nullptr);
    ips.emplace_back();
    try {
      ips[i] = ip_of(file.hosts[i].address);
      require_distinct(ips, i);
      request.address = ips[i];
      questions[i] = std::make_unique<Question>(file, file.hosts[i], to_line(to_json(request)));
    } catch (const Unavailable& error) {
      reasons[i] = error.what();
    }
  }
  converse(questions);
  Survey result;
  for (size_t i = 0; i < file.hosts.size(); ++i) {
    try {
      if (!reasons[i].empty()) throw Unavailable(reasons[i]);
      HostFacts facts = facts_of(*questions[i]);
      Host host = file.hosts[i];
      if (host.slots == 0) host.slots = facts.cpus;
      result.usable.push_back({std::move(host), ips[i], std::move(facts)});
    } catch (const std::runtime_error& error) {
      result.notes.push_back(unusable(file.hosts[i], error.what()));
    }
  }
  return result;
}

}  // namespace muster::local
