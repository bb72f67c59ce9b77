#pragma once

#include <string>

#include "common/documents/document.h"

namespace muster {

// The content of the container's termination message, which the trainer image's supervisor writes
// and the operator reads from containerStatuses[].state.terminated.message: one JSON object,
// {"restarts": 2, "message": "...", "progress": {...}, "results": {...}}.
struct TerminationMessage {
  int restarts = 0;     // restarts in place in this container
  std::string message;  // the last line that the trainer wrote to standard error
  Json progress;        // the last /progress of a trainer that has succeeded; else null
  Json results = {};    // results of the training or of an evaluator (results.h); or null

  // Returns at most 3,072 bytes, of the 4,096 that the kubelet keeps. If the whole does not fit,
  // the message is shortened first; results that still do not fit are left out.
  std::string text() const;
  // Reads a termination message, also from an image without a supervisor: anything that is not such
  // an object is read as text, and its last line that is not blank is the message.
  static TerminationMessage parse(const std::string& text);

  bool operator==(const TerminationMessage&) const = default;
};

// Returns the message of a log line: "message" of a line that is a JSON object, as
// common/program/log.h writes them, else the whole line.
std::string message_of(const std::string& line);

}  // namespace muster
