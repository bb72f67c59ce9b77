#pragma once

#include <string>

#include "common/document.h"

namespace muster {

// What the supervisor of the trainer image leaves in the container's termination message and the
// operator reads from containerStatuses[].state.terminated.message: one JSON object,
// {"restarts": 2, "message": "...", "progress": {...}, "results": {...}}.
struct TerminationMessage {
  int restarts = 0;     // in place, in this container
  std::string message;  // the last line that the trainer wrote to standard error
  Json progress;        // the last /progress of a trainer that has succeeded; else null
  Json results = {};    // the results of its training, or of an evaluator (results.h); or null

  // At most 3,072 bytes, of the 4,096 that the kubelet keeps. Where all does not fit, the message
  // is shortened first; results that do not fit without it are left out.
  std::string text() const;
  // Of an image that has no supervisor too: whatever is no such object is text, whose last line
  // that is not blank is the message.
  static TerminationMessage parse(const std::string& text);

  bool operator==(const TerminationMessage&) const = default;
};

// What a line of a log says: "message" of a line that is a JSON object, as common/log.h writes
// them, else the line.
std::string message_of(const std::string& line);

}  // namespace muster
