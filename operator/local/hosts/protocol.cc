#include "operator/local/hosts/protocol.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/documents/problem.h"

namespace muster::local {

namespace {

constexpr const char* kProtocol = "protocol";

Json parse(const std::string& line) {
  Json value = parse_or_null(line);
  const Json& protocol = member(value, kProtocol);
  if (protocol != Json(kHostProtocol)) {
    throw Invalid("muster host: expected a line of JSON with " + std::string(kProtocol) + " " +
                  std::to_string(kHostProtocol) + ", found " +
                  (protocol.is_null() ? "none" : describe(protocol)) +
                  ": is the same version of Muster on both hosts?");
  }
  return value;
}

}  // namespace

std::string to_line(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

Json to_json(const HostRequest& request) {
  return {{kProtocol, kHostProtocol},
          {"command", request.command},
          {"environment", request.environment},
          {"directory", request.directory}};
}

HostRequest parse_host_request(const std::string& line) {
  const Json value = parse(line);
  HostRequest request{strings_in(member(value, "command")), {}, string_or(value, "directory", "")};
  for (const auto& [name, text] : member(value, "environment").items())
    if (text.is_string()) request.environment[name] = text.get<std::string>();
  if (request.command.empty()) throw Invalid("muster host: expected a command, found none");
  return request;
}

Json to_json(const SurveyRequest& request) {
  return {{kProtocol, kHostProtocol},   {"folder", request.folder},   {"file", request.file},
          {"content", request.content}, {"address", request.address}, {"folders", request.folders},
          {"trainer", request.trainer}};
}

SurveyRequest parse_survey_request(const std::string& line) {
  const Json value = parse(line);
  return {string_or(value, "folder", ""),       string_or(value, "file", ""),
          string_or(value, "content", ""),      string_or(value, "address", ""),
          strings_in(member(value, "folders")), bool_or(value, "trainer", false)};
}

Json to_json(const HostFacts& facts) {
  return {{kProtocol, kHostProtocol},
          {"cpus", facts.cpus},
          {"gpus", facts.gpus},
          {"ports", facts.ports},
          {"problem", facts.problem}};
}

HostFacts parse_host_facts(const std::string& line) {
  const Json value = parse(line);
  HostFacts facts;
  const auto count = [&](const char* name, int least) {
    return static_cast<int>(std::clamp<int64_t>(integer_or(value, name, least), least, 1'000'000));
  };
  facts.cpus = count("cpus", 1);
  facts.gpus = count("gpus", 0);
  facts.problem = string_or(value, "problem", "");
  const Json& ports = member(value, "ports");
  if (ports.is_array()) {
    for (const Json& port : ports)
      if (port.is_number_integer() && port > 0 && port < 65536) facts.ports.push_back(port);
  }
  return facts;
}

}  // namespace muster::local
