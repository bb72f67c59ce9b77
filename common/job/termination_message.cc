#include "common/job/termination_message.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/text/shorten.h"

namespace muster {

namespace {

constexpr size_t kMost = 3072;
constexpr size_t kLeastOfMessage = 128;

std::string json_text(const TerminationMessage& words, const std::string& message) {
  Json json = {{"restarts", words.restarts}, {"message", message}};
  if (!words.progress.is_null()) json["progress"] = words.progress;
  if (!words.results.is_null()) json["results"] = words.results;
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

std::string TerminationMessage::text() const {
  std::string text = json_text(*this, message);
  // A byte takes up to six bytes in JSON, so the length of the message that fits is searched for.
  for (size_t kept = std::min(message.size(), kMost); text.size() > kMost; kept = kept * 7 / 8) {
    if (kept < kLeastOfMessage && !results.is_null())
      return TerminationMessage{restarts, message, progress, {}}.text();
    if (kept < kLeastOfMessage) return TerminationMessage{restarts, message, {}, {}}.text();
    text = json_text(*this, shorten(message, kept));
  }
  return text;
}

TerminationMessage TerminationMessage::parse(const std::string& text) {
  const Json json = parse_or_null(text);
  const bool ours = json.is_object() && json.contains("restarts") &&
                    json["restarts"].is_number_unsigned() && json.contains("message") &&
                    json["message"].is_string();
  if (!ours) return {0, message_of(last_line(text)), {}};
  const uint64_t restarts = json["restarts"];
  return {static_cast<int>(std::min<uint64_t>(restarts, 1'000'000)), json["message"],
          member(json, "progress"), member(json, "results")};
}

std::string message_of(const std::string& line) {
  const Json json = parse_or_null(line);
  const bool has_message =
      json.is_object() && json.contains("message") && json["message"].is_string();
  return has_message ? json["message"].get<std::string>() : line;
}

}  // namespace muster
