#include "operator/plan/describe.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "common/exit_code.h"
#include "common/text/shorten.h"
#include "operator/api/disruption.h"
#include "operator/plan/failure.h"

namespace muster::plan {
namespace {

constexpr size_t kLongestLine = 768;
constexpr size_t kLongestExplanation = 512;

// Returns the length of the well-formed UTF-8 sequence at `at` (RFC 3629, table of section 4), 0 if
// there is none.
size_t sequence_length(const std::string& text, size_t at) {
  auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  auto is_tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return is_tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
    return is_tail(1) && is_tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
    return is_tail(1) && is_tail(2) && is_tail(3) ? 4 : 0;
  }
  return 0;
}

// Replaces each byte that belongs to no whole UTF-8 character, and ASCII that is `refused`, by '?',
// and shortens a text of more than `most` bytes in its middle.
std::string clean(const std::string& text, size_t most, bool (*refused)(char)) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text, at);
    const bool replaced = length == 0 || (length == 1 && refused(text[at]));
    const size_t taken = replaced ? 1 : length;
    result += replaced ? "?" : text.substr(at, taken);
    at += taken;
  }
  return shorten(result, most);
}

bool is_control(char letter) {
  return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
}

// Returns a reason in people's words, to follow "was".
std::string words_for(const std::string& reason) {
  if (reason == api::kRunnerLost) return "lost with the `muster run` that had started it";
  if (reason == "NodeLost") return "lost with its node";
  if (reason == "Evicted") return "evicted";
  if (reason == "Preempted") return "preempted";
  return clean_line(reason);
}

}  // namespace

std::string describe(const api::TrainingJob& job, Role role, int index) {
  return api::role_name(job, role) + "-" + std::to_string(index);
}

std::string quote_of(const ObservedReplica& replica) {
  constexpr int kFromOutside[] = {129, 130, 137, kTerminated};
  const bool from_outside =
      replica.exit_code &&
      std::ranges::find(kFromOutside, *replica.exit_code) != std::end(kFromOutside);
  if (from_outside || replica.last_line.empty()) return "";
  return ": \"" + clean_line(replica.last_line) + "\"";
}

std::string describe_end(const api::TrainingJob& job, const ObservedReplica& replica) {
  const std::string text = describe(job, replica.role, replica.index);
  if (replica.phase == Phase::succeeded && !left_on_request(replica)) return text + " succeeded";
  const bool ended = !is_live(replica);
  if (left_as_asked(replica)) {
    const std::string was =
        " was " + (api::is_disruption(replica.reason) ? words_for(replica.reason) : "deleted");
    if (!replica.exit_code) return text + was;
    return text + was + " and ended with exit code " + std::to_string(*replica.exit_code) + " (" +
           describe_exit_code(*replica.exit_code) + ")";
  }
  if (replica.reason == api::kNotStarted) return text + " could not be started" + quote_of(replica);
  std::string how = ended ? " failed without an exit code" : " keeps failing";
  if (replica.exit_code) {
    how = ended ? " ended with exit code " : " keeps failing, last with exit code ";
    how += std::to_string(*replica.exit_code);
    how += std::string(" (") + describe_exit_code(*replica.exit_code) + ")";
  } else if (ended && api::is_disruption(replica.reason)) {
    return text + " was " + words_for(replica.reason) + quote_of(replica);
  }
  if (!replica.reason.empty()) how += ", " + words_for(replica.reason);
  return text + how + quote_of(replica);
}

std::string describe_in_place(const api::TrainingJob& job, const ObservedReplica& replica,
                              int times) {
  std::string text = describe(job, replica.role, replica.index) + " was restarted in place";
  if (times > 1) text += " " + std::to_string(times) + " times";
  if (replica.phase == Phase::failed || !replica.exit_code) return text;
  text += (times > 1 ? ", last" : "") + std::string(" after exit code ") +
          std::to_string(*replica.exit_code) + " (" + describe_exit_code(*replica.exit_code) + ")" +
          quote_of(replica);
  if (!replica.outage_seconds) return text;
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.1f", *replica.outage_seconds);
  return text + "; training went on " + seconds.data() + " s after that";
}

std::string describe_obstacle(const ObservedReplica& replica) {
  const std::string reason = clean_line(replica.reason);
  const std::string words = clean(replica.explanation, kLongestExplanation, is_control);
  return reason.empty() || words.empty() ? reason : reason + ": " + words;
}

std::string clean_line(const std::string& line) {
  return clean(line, kLongestLine, is_control);
}

std::string bounded(const std::string& message, size_t most) {
  return clean(message, most, [](char) { return false; });
}

}  // namespace muster::plan
