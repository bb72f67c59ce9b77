#include "common/program/log.h"

#include <fmt/chrono.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/documents/json.h"
#include "common/environment.h"
#include "common/program/log_text.h"

namespace muster::log {

namespace {

using nlohmann::json;

bool logs_json = false;  // set before the first line is written

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const char* level_name(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::info:
      return "info";
    case spdlog::level::warn:
      return "warning";
    default:
      return "error";
  }
}

void append(spdlog::memory_buf_t& out, std::string_view text) {
  out.append(text.data(), text.data() + text.size());
}

// Makes a text safe: one line stays one line, and no input moves the reader's cursor. The control
// characters U+0080 to U+009F, of which some terminals take commands too, are two bytes in UTF-8.
std::string printable(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      result += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

// Reads "2026-01-02T03:04:05.250Z", as JsonFormatter writes it.
std::optional<std::time_t> time_of(const std::string& text) {
  std::tm utc{};
  int length = 0;
  const int read = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &utc.tm_year, &utc.tm_mon,
                               &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &length);
  if (read != 6 || length != 19 || !text.ends_with('Z')) return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return ::timegm(&utc);
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Returns "hh:mm:ss level name: message".
std::string text_line(std::time_t time, std::string_view level, std::string_view name,
                      std::string_view message) {
  return fmt::format("{:%H:%M:%S} {} {}{}{}", fmt::localtime(time), level, name,
                     name.empty() ? "" : ": ", message);
}

std::string_view view(spdlog::string_view_t text) {
  return {text.data(), text.size()};
}

// The payload is the inside of a JSON object that has the message and the fields.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto since_epoch = message.time.time_since_epoch();
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch);
    append(out, fmt::format(R"({{"time":"{:%Y-%m-%dT%H:%M:%S}.{:03}Z","level":"{}","name":{},{}}})"
                            "\n",
                            fmt::gmtime(std::chrono::system_clock::to_time_t(message.time)),
                            milliseconds.count() % 1000, level_name(message.level),
                            dump(view(message.logger_name)), view(message.payload)));
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

class TextFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const std::string level = level_name(message.level);
    const auto time = std::chrono::system_clock::to_time_t(message.time);
    const std::string line =
        text_line(time, level, view(message.logger_name), view(message.payload));
    message.color_range_start = out.size() + line.find(level);
    message.color_range_end = message.color_range_start + level.size();
    append(out, line + "\n");
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<TextFormatter>();
  }
};

bool wants_json() {
  const std::string word = environment_variable("MUSTER_LOG_FORMAT");
  if (word == "json") return true;
  if (word == "text") return false;
  return ::isatty(STDERR_FILENO) == 0;
}

spdlog::level::level_enum lowest_level() {
  const std::string word = environment_variable("MUSTER_LOG_LEVEL");
  if (word == "debug") return spdlog::level::debug;
  if (word == "warning") return spdlog::level::warn;
  if (word == "error") return spdlog::level::err;
  return spdlog::level::info;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void initialize(std::string_view name) {
  auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>(std::string(name), std::move(sink));
  logs_json = wants_json();
  if (logs_json) {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    logger->set_formatter(std::make_unique<TextFormatter>());
  }
  logger->set_level(lowest_level());
  spdlog::set_default_logger(std::move(logger));
}

void write(Level level, std::string_view message, const json& fields) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  const auto spdlog_level = to_spdlog(level);
  if (!logger->should_log(spdlog_level)) return;
  std::string payload = logs_json ? "\"message\":" + dump(message) : printable(message);
  if (logs_json && fields.is_object()) {
    for (const auto& [key, value] : fields.items()) {
      const bool is_taken = key == "time" || key == "level" || key == "name" || key == "message";
      if (!is_taken) payload += "," + dump(key) + ":" + dump(value);
    }
  }
  logger->log(spdlog_level, spdlog::string_view_t(payload.data(), payload.size()));
}

std::optional<std::string> as_text(std::string_view line) {
  if (!line.starts_with('{')) return std::nullopt;
  const json event = parse_or_null(line);
  if (!event.is_object()) return std::nullopt;
  const std::optional<std::time_t> time = time_of(text_of(event, "time"));
  const std::string level = text_of(event, "level");
  const std::string name = text_of(event, "name");
  const std::string message = text_of(event, "message");
  if (!time || level.empty() || name.empty() || message.empty()) return std::nullopt;
  return text_line(*time, printable(level), printable(name), printable(message));
}

void debug(std::string_view message) {
  write(Level::debug, message, nullptr);
}
void info(std::string_view message) {
  write(Level::info, message, nullptr);
}
void warning(std::string_view message) {
  write(Level::warning, message, nullptr);
}
void error(std::string_view message) {
  write(Level::error, message, nullptr);
}
void info(std::string_view message, const json& fields) {
  write(Level::info, message, fields);
}
void warning(std::string_view message, const json& fields) {
  write(Level::warning, message, fields);
}
void error(std::string_view message, const json& fields) {
  write(Level::error, message, fields);
}

}  // namespace muster::log
