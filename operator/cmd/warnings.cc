#include "operator/cmd/warnings.h"

#include "common/document.h"
#include "common/json.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRemembered = 1000;

std::string warning_in_json(const std::string& line) {
  const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  return string_or(event, "level", "") == "warning" ? string_or(event, "message", "") : "";
}

}  // namespace

// Text: "12:34:56 warning mnist-chief-0: the message".
std::string warning_in(const std::string& line) {
  if (line.starts_with('{')) return warning_in_json(line);
  constexpr std::string_view kClock = "00:00:00 ";
  constexpr std::string_view kLevel = "warning ";
  if (line.size() < kClock.size() || line[2] != ':' || line[5] != ':' || line[8] != ' ') return "";
  if (line.compare(kClock.size(), kLevel.size(), kLevel) != 0) return "";
  const size_t name = kClock.size() + kLevel.size();
  const size_t colon = line.find(": ", name);
  return colon == std::string::npos ? line.substr(name) : line.substr(colon + 2);
}

Warnings::Warnings(fs::path folder) : folder_(std::move(folder)) {
  find_logs(/*skip=*/true);
}

void Warnings::find_logs(bool skip) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() != ".log" || name == "muster") continue;
    const auto [at, added] = logs_.try_emplace(name, entry.path());
    if (added && skip) at->second.skip();
  }
}

std::vector<std::string> Warnings::read() {
  find_logs(/*skip=*/false);
  std::vector<std::string> result;
  for (auto& [name, log] : logs_) {
    for (const LogLine& line : log.read(/*even_unfinished=*/false)) {
      const std::string warning = warning_in(line.text);
      if (warning.empty() || told_.contains(warning)) continue;
      if (told_.size() < kMostRemembered) told_.insert(warning);
      result.push_back(name + ": " + warning);
    }
  }
  return result;
}

}  // namespace muster::cmd
