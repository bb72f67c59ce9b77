#include "operator/cmd/cluster/pod_log.h"

#include <chrono>
#include <cstdio>

#include "common/error.h"
#include "operator/api/status.h"
#include "operator/kube/api/api_error.h"
#include "operator/kube/api/resource.h"
#include "operator/kube/pods/names.h"

namespace muster::cmd {

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr auto kDeadline = std::chrono::seconds(60);  // for a log that is not followed

// Reads "Z" or "+01:00", in seconds.
std::optional<int64_t> offset(const std::string& zone) {
  if (zone == "Z") return 0;
  char sign = 0;
  int hours = 0, minutes = 0, length = 0;
  if (std::sscanf(zone.c_str(), "%c%2d:%2d%n", &sign, &hours, &minutes, &length) != 3 ||
      static_cast<size_t>(length) != zone.size() || (sign != '+' && sign != '-')) {
    return std::nullopt;
  }
  return (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

}  // namespace

std::optional<int64_t> log_time(std::string_view text) {
  constexpr size_t kWhole = 19;  // "2026-01-02T03:04:05"
  const auto whole = api::parse_time(std::string(text.substr(0, kWhole)) + "Z");
  if (!whole) return std::nullopt;
  size_t at = kWhole;
  const int64_t rest = api::parse_fraction(text, at).count();
  const std::optional<int64_t> zone = offset(std::string(text.substr(at)));
  if (!zone) return std::nullopt;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*whole).time_since_epoch().count();
  return (seconds - *zone) * kSecond + rest;
}

PodLog::PodLog(kube::Transport& transport, const kube::Pod& pod)
    : transport_(transport),
      pod_(pod.meta.name),
      path_(kube::pods().path(pod.meta.name_space, pod.meta.name, "log")),
      container_(pod.meta.label(kube::kContainerLabel)) {}

kube::Request PodLog::request(int tail) const {
  kube::Request request;
  request.path = path_;
  request.query = {{"container", container_}, {"timestamps", "true"}};
  // sinceTime has whole seconds: lines of the last second that were read already come again, and
  // take() drops them.
  if (last_) {
    const api::Time since{std::chrono::milliseconds(*last_ / kSecond * 1000)};
    request.query.emplace_back("sinceTime", api::format_time(since));
  } else if (tail >= 0) {
    request.query.emplace_back("tailLines", std::to_string(tail));
  }
  request.deadline = kDeadline;
  return request;
}

void PodLog::take(std::string_view line, const OnLine& on_line) {
  const size_t space = line.find(' ');
  const std::optional<int64_t> time = log_time(line.substr(0, space));
  if (time && last_ && *time <= *last_) return;
  if (time) last_ = time;
  const bool only_time = time && space == std::string_view::npos;
  const std::string_view text = only_time ? "" : time ? line.substr(space + 1) : line;
  on_line({last_.value_or(0), std::string(text)});
}

void PodLog::read(int tail, const OnLine& on_line) {
  const kube::Request request = this->request(tail);
  const kube::Response response = transport_.send(request);
  if (response.status == 404) return;
  if (response.status != 200) kube::throw_api_error(request, kube::status_of(response));
  std::string_view rest = response.body;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    take(rest.substr(0, end), on_line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::string PodLog::follow(int tail, const OnLine& on_line, const std::stop_token& stop) {
  kube::Request request = this->request(tail);
  request.query.emplace_back("follow", "true");
  const kube::StreamEnd end = transport_.stream(
      request, [&](std::string_view line) { take(line, on_line); }, stop);
  if (end.reason != kube::StreamEnd::Reason::refused) return "";
  kube::Response refusal;
  refusal.status = end.status;
  refusal.body = end.body;
  return kube::status_of(refusal).message;
}

}  // namespace muster::cmd
