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
// `muster host survey` answers by one line of JSON on its standard output, and ends.
//
// `muster host run` runs one replica, the output of which is its own standard output. Bytes follow
// the request: kBeat at least every kBeatPeriod, kTerminate once the replica is to leave. Where no
// byte comes for kPatience, or the input ends, the replica is killed. Lines of the standard error
// that begin with kReport say how it goes: "started", "exit <code>" at its end, or "problem
// <words>" if it could not be started.
inline constexpr int kHostProtocol = 1;
// Returns the value as the line that is sent, with its end.
std::string to_line(const Json& value);
inline constexpr char kBeat = '.';
inline constexpr char kTerminate = 't';
inline constexpr const char* kReport = "muster-host: ";
inline constexpr std::chrono::seconds kBeatPeriod{2};
inline constexpr std::chrono::seconds kPatience{30};

// A replica on another host is started with this.
struct HostRequest {
  std::vector<std::string> command;  // kTrainer in the first place: the host's muster-trainer
  std::map<std::string, std::string> environment;  // in place of the host's own
  std::string directory;                           // its working directory
};
inline constexpr const char* kTrainer = "muster-trainer";
Json to_json(const HostRequest& request);
// Throws Invalid if the line is no such request, or of another protocol.
HostRequest parse_host_request(const std::string& line);

// A host is asked this before anything is started there.
struct SurveyRequest {
  std::string folder;                // that all hosts share, and
  std::string file;                  // a file in it, which
  std::string content;               // has this content
  std::string address;               // that is to be the host's own
  std::vector<std::string> folders;  // others that must be there
  bool trainer = false;              // whether muster-trainer is needed
};
Json to_json(const SurveyRequest& request);
SurveyRequest parse_survey_request(const std::string& line);

// A host says this of itself.
struct HostFacts {
  int cpus = 1;            // that a process there may use
  int gpus = 0;            // that its NVIDIA driver shows
  std::vector<int> ports;  // on which nobody listens
  std::string problem;     // why no replica can run there, or ""
};
Json to_json(const HostFacts& facts);
HostFacts parse_host_facts(const std::string& line);

}  // namespace muster::local
