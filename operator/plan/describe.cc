#include "operator/plan/describe.h"

#include "common/exit_code.h"

namespace muster::plan {
namespace {

constexpr size_t kLongestLine = 256;

// Length of the well-formed UTF-8 sequence at `at` (RFC 3629, table of section 4), 0 if there is
// none.
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

}  // namespace

std::string describe(const api::TrainingJob& job, Role role, int index) {
  return api::role_name(job, role) + "-" + std::to_string(index);
}

std::string describe_end(const api::TrainingJob& job, const ObservedReplica& replica) {
  std::string text = describe(job, replica.role, replica.index);
  if (replica.phase == Phase::succeeded) return text + " succeeded";
  if (replica.phase != Phase::failed) text += " keeps failing";
  if (replica.exit_code) {
    text += replica.phase == Phase::failed ? " ended with exit code " : ", last with exit code ";
    text += std::to_string(*replica.exit_code);
    text += std::string(" (") + describe_exit_code(*replica.exit_code) + ")";
  } else if (replica.phase == Phase::failed) {
    text += replica.reason.empty() ? " failed without an exit code" : " was lost";
  }
  if (!replica.reason.empty()) text += ", " + clean_line(replica.reason);
  if (!replica.last_line.empty()) text += ": \"" + clean_line(replica.last_line) + "\"";
  return text;
}

std::string clean_line(const std::string& line) {
  std::string clean;
  for (size_t at = 0; at < line.size();) {
    const size_t length = sequence_length(line, at);
    const bool control = length == 1 && (line[at] < 0x20 || line[at] == 0x7F);
    const size_t taken = length == 0 || control ? 1 : length;
    if (clean.size() + taken > kLongestLine) break;
    clean += length == 0 || control ? "?" : line.substr(at, taken);
    at += taken;
  }
  return clean;
}

}  // namespace muster::plan
