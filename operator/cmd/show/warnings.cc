#include "operator/cmd/show/warnings.h"

#include "common/documents/document.h"
#include "common/documents/json.h"
#include "operator/cmd/show/log_printer.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRemembered = 1000;

std::string warning_in_json(const std::string& line) {
  const Json event = parse_or_null(line);
  return string_or(event, "level", "") == "warning" ? string_or(event, "message", "") : "";
}

}  // namespace

std::string warning_in(const std::string& line) {
  if (line.starts_with('{')) return warning_in_json(line);
  const std::optional<TextLogLine> parsed = parse_log_text(line);
  return parsed && parsed->level == "warning" ? parsed->message : "";
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
