#include "operator/local/hosts/link.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/system/file.h"
#include "common/system/signals.h"
#include "common/text/whole_number.h"
#include "common/threads/pause.h"
#include "operator/local/hosts/refusals.h"
#include "operator/local/hosts/session.h"

namespace muster::local {

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLongestLine = 4096;

LinkOrder read_link_order(const std::filesystem::path& path) {
  const Json value = parse_or_null(read_file(path));
  LinkOrder order;
  order.command = strings_in(member(value, "command"));
  if (order.command.empty()) {
    throw Invalid(path.string() +
                  ": expected the JSON that `muster run --hosts` writes, found "
                  "something else");
  }
  order.request = parse_host_request(member(value, "request").dump());
  order.loss = string_or(value, "loss", "");
  return order;
}

// Collects what the other side has reported about the replica so far.
struct Reports {
  bool has_begun = false;  // whether any report has come
  std::optional<int> exit_code;
  std::string problem;
  std::string last_line;   // last line that is not a report: ssh's own words
  std::string part;        // part of an unfinished line
  bool is_to_end = false;  // SIGTERM has come
};

void take_line(const std::string& line, Reports& reports) {
  const std::string report = kReport;
  if (!line.starts_with(report)) {
    if (!line.empty()) reports.last_line = line;
    const std::string text = line + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    return;
  }
  const std::string words = line.substr(report.size());
  reports.has_begun = true;
  if (words.starts_with("exit ")) reports.exit_code = whole_number<int>(words.substr(5));
  if (words.starts_with("problem ")) reports.problem = words.substr(8);
}

// Returns false at the end.
bool read_reports(const Descriptor& errors, Reports& reports) {
  char bytes[4096];
  const ssize_t got = ::read(errors.get(), bytes, sizeof bytes);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  reports.part.append(bytes, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  size_t end;
  while ((end = reports.part.find('\n')) != std::string::npos) {
    const bool by_ssh = end > 0 && reports.part[end - 1] == '\r';
    take_line(reports.part.substr(0, by_ssh ? end - 1 : end), reports);
    reports.part.erase(0, end + 1);
  }
  if (got == 0 || reports.part.size() > kLongestLine) {
    if (!reports.part.empty()) take_line(reports.part, reports);
    reports.part.clear();
  }
  return got > 0;
}

Reports converse(Session& session, const Descriptor& signals, std::string unsent) {
  Reports reports;
  auto next_beat = Clock::now() + kBeatPeriod;
  while (true) {
    if (Clock::now() >= next_beat) {
      if (unsent.empty()) unsent += kBeat;
      next_beat = Clock::now() + kBeatPeriod;
    }
    session.send(unsent);
    pollfd watched[] = {{session.errors().get(), POLLIN, 0},
                        {signals.get(), POLLIN, 0},
                        {unsent.empty() ? -1 : session.input().get(), POLLOUT, 0}};
    if (::poll(watched, 3, milliseconds_until(next_beat)) <= 0) continue;
    if (watched[0].revents != 0 && !read_reports(session.errors(), reports)) return reports;
    if (read_signal(signals)) {
      unsent += kTerminate;
      reports.is_to_end = true;
    }
  }
}

// Returns true if SIGTERM has come meanwhile.
bool pause_until_signal(std::chrono::milliseconds time, const Descriptor& signals) {
  pollfd watched{signals.get(), POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(time.count())) > 0;
}

std::string loss_of(const Reports& reports, int code) {
  if (!reports.problem.empty()) return reports.problem;
  return "ssh has ended with " + std::to_string(code) +
         (reports.last_line.empty() ? "" : ": " + reports.last_line);
}

}  // namespace

void write_link_order(const std::filesystem::path& path, const LinkOrder& order) {
  const Json value = {{"command", order.command},
                      {"request", to_json(order.request)},
                      {"loss", order.loss.string()}};
  write_file_atomically(path, value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

int run_link(const std::filesystem::path& path) {
  const Descriptor signals = watch_signals({SIGTERM});
  const LinkOrder order = read_link_order(path);
  const std::string request = to_line(to_json(order.request));
  for (Refusals refusals;;) {
    Session session(order.command, Session::Output::ours);
    const Reports reports = converse(session, signals, request);
    const int code = session.wait();
    if (reports.exit_code) return *reports.exit_code;
    if (!reports.has_begun) {
      if (const auto pause = refusals.pause_after(code, reports.last_line)) {
        if (reports.is_to_end || pause_until_signal(*pause, signals)) return 128 + SIGTERM;
        continue;
      }
    }
    try {
      write_file_atomically(order.loss, loss_of(reports, code) + "\n");
    } catch (const WriteError& error) {
      const std::string words = error.what() + std::string("\n");
      [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, words.data(), words.size());
    }
    return Session::kSshFailed;
  }
}

}  // namespace muster::local
