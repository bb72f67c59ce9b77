#include "operator/kube/cluster/pod_troubles.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>

#include "common/documents/json.h"
#include "common/program/log.h"
#include "operator/api/status.h"

namespace muster::kube {

namespace {

constexpr auto kForgotten = std::chrono::minutes(10);
constexpr size_t kLongIdentity = 32;  // hexadecimal digits of the id of a container or sandbox

Time time_of(const Json& event) {
  const std::array<std::string, 4> times = {
      string_or(member(event, "series"), "lastObservedTime", ""),
      string_or(event, "lastTimestamp", ""), string_or(event, "eventTime", ""),
      string_or(member(event, "metadata"), "creationTimestamp", "")};
  Time newest{};
  for (const std::string& text : times)
    newest = std::max(newest, api::parse_time(text).value_or(Time{}));
  return newest;
}

// Replaces ids by "...", because the ids differ in each attempt to make a sandbox, with the same
// cause.
std::string without_identities(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end]))) ++end;
    const bool is_identity = end - at >= kLongIdentity;
    if (end == at) ++end;
    result += is_identity ? "..." : text.substr(at, end - at);
    at = end;
  }
  return result;
}

}  // namespace

PodTroubles::Trouble newest_trouble(const std::vector<Json>& events) {
  const Json* newest = nullptr;
  const auto key = [](const Json& event) {
    return std::tuple(time_of(event), string_or(event, "type", "") == "Warning");
  };
  for (const Json& event : events) {
    // This event follows each sandbox that failed, and says less than the failure itself.
    if (string_or(event, "reason", "") == "SandboxChanged") continue;
    if (newest == nullptr || key(event) > key(*newest)) newest = &event;
  }
  if (newest == nullptr || string_or(*newest, "type", "") != "Warning") return {};
  return {string_or(*newest, "reason", ""), without_identities(string_or(*newest, "message", ""))};
}

std::optional<PodTroubles::Trouble> PodTroubles::ask(const Pod& pod) const {
  ListOptions options;
  options.field_selector = "involvedObject.uid=" + pod.meta.uid;
  try {
    return newest_trouble(client_.list(events(), pod.meta.name_space, options));
  } catch (const Unavailable& error) {
    log::debug("events of pod " + pod.meta.key() + ": " + error.what());
  } catch (const Invalid& error) {
    log::debug("events of pod " + pod.meta.key() + ": " + error.what());
  }
  return std::nullopt;
}

// Searches seldom, because there may be thousands of pods.
void PodTroubles::forget_old(Time now) {
  if (now - looked_ < kForgotten / 10) return;
  looked_ = now;
  std::erase_if(pods_, [&](const auto& entry) { return now - entry.second.due > kForgotten; });
}

PodTroubles::Trouble PodTroubles::look(const Pod& pod, Time now, Time& again) {
  {
    const MutexLock lock(mutex_);
    forget_old(now);
    const auto [entry, is_new] = pods_.try_emplace(pod.meta.uid);
    Known& known = entry->second;
    if (is_new) known = {now + settings_.patience, settings_.first_pause, {}};
    if (now >= known.due && now < next_) {
      // Each pod gets a separate turn: if many pods came back for the same turn, only one of them
      // could use it.
      turns_ = std::max(turns_, next_);
      known.due = std::min<Time>(turns_, now + settings_.longest_pause);
      turns_ += settings_.between;
    }
    again = known.due;
    if (now < known.due) return known.trouble;
    next_ = now + settings_.between;
    known.due = again = now + known.pause;
    known.pause = std::min(2 * known.pause, settings_.longest_pause);
  }
  const std::optional<Trouble> trouble = ask(pod);
  const MutexLock lock(mutex_);
  Known& known = pods_[pod.meta.uid];
  if (trouble) known.trouble = *trouble;
  return known.trouble;
}

std::optional<std::string> quota_in(const std::string& refusal) {
  for (const std::string said : {"exceeded quota: ", "failed quota: "}) {
    const size_t at = refusal.find(said);
    if (at == std::string::npos) continue;
    std::string quota = refusal.substr(at + said.size());
    const size_t end = quota.find_first_of(",:");
    if (end != std::string::npos) quota[end] = ':';
    return quota;
  }
  return std::nullopt;
}

std::string without_object_name(const std::string& refusal) {
  const std::string said = " is forbidden: ";
  const size_t at = refusal.find(said);
  return at == std::string::npos ? refusal : refusal.substr(at + said.size());
}

}  // namespace muster::kube
