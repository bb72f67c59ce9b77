#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "common/documents/document.h"

namespace muster::local {

// `muster run --hosts` starts `muster host` on a host by ssh, and they talk as follows. The request
// is one line of JSON on the standard input of `muster host`.
//
// `muster host survey` answers with one line of JSON on its standard output, and ends.
//
// `muster host run` runs one replica, and writes the replica's output to its own standard output.
// After the request it reads bytes: kBeat at least every kBeatPeriod, and kTerminate when the
// replica should leave. If no byte comes for kPatience, or the input ends, the replica is killed.
// Lines of standard error that begin with kReport report the replica's state: "started", "exit
// <code>" at its end, or "problem <words>" if it could not be started.
inline constexpr int kHostProtocol = 1;
// Returns the value as a line to send, with its line end.
std::string to_line(const Json& value);
inline constexpr char kBeat = '.';
inline constexpr char kTerminate = 't';
inline constexpr const char* kReport = "muster-host: ";
inline constexpr std::chrono::seconds kBeatPeriod{2};
inline constexpr std::chrono::seconds kPatience{30};

// The request to start a replica on another host.
struct HostRequest {
  std::vector<std::string> command;  // kTrainer as the first word means the host's muster-trainer
  std::map<std::string, std::string> environment;  // replaces the host's variables
  std::string directory;                           // its working directory
};
inline constexpr const char* kTrainer = "muster-trainer";
Json to_json(const HostRequest& request);
// Throws Invalid if the line is not such a request, or has another protocol.
HostRequest parse_host_request(const std::string& line);

// The request that a host must answer before anything is started there.
struct SurveyRequest {
  std::string folder;                // a folder that all hosts must share
  std::string file;                  // a file in `folder`
  std::string content;               // the content of `file`
  std::string address;               // must be an address of the host
  std::vector<std::string> folders;  // other folders that must exist
  bool trainer = false;              // whether muster-trainer is needed
};
Json to_json(const SurveyRequest& request);
SurveyRequest parse_survey_request(const std::string& line);

// A host's answer about itself.
struct HostFacts {
  int cpus = 1;            // processors that a process may use
  int gpus = 0;            // GPUs that its NVIDIA driver shows
  std::vector<int> ports;  // free ports
  std::string problem;     // why no replica can run there, or ""
};
Json to_json(const HostFacts& facts);
HostFacts parse_host_facts(const std::string& line);

}  // namespace muster::local
