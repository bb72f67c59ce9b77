#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace muster::log {

enum class Level { debug, info, warning, error };

// Starts logging to standard error, one line per event: text on a terminal, elsewhere one JSON
// object per line ({"time", "level", "message", fields...}). MUSTER_LOG_FORMAT=text|json and
// MUSTER_LOG_LEVEL=debug|info|warning|error override. Built on spdlog. Thread-safe. Call once in
// main; `name` is the replica or program ("mnist-worker-0"), shown in each line.
void initialize(std::string_view name);

// `fields` is a JSON object of values that a program may filter by. Only JSON lines contain the
// fields, so `message` alone must say everything that a person needs.
void write(Level level, std::string_view message, const nlohmann::json& fields);
void debug(std::string_view message);
void info(std::string_view message);
void warning(std::string_view message);
void error(std::string_view message);
void info(std::string_view message, const nlohmann::json& fields);
void warning(std::string_view message, const nlohmann::json& fields);
void error(std::string_view message, const nlohmann::json& fields);

}  // namespace muster::log
