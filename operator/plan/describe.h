#pragma once

#include <string>

#include "operator/plan/values.h"

namespace muster::plan {

// "worker-1".
std::string describe(const api::TrainingJob& job, Role role, int index);

// How a replica ended, for messages: `worker-1 ended with exit code 65 (malformed input): "last
// line"`.
std::string describe_end(const api::TrainingJob& job, const ObservedReplica& replica);

// That it was restarted in place since this was last looked at: `worker-1 was restarted in place
// 2 times, last after exit code 137 (terminated (SIGKILL)); training went on 2.1 s after that`.
std::string describe_in_place(const api::TrainingJob& job, const ObservedReplica& replica,
                              int times);

// The part of describe_end from ": " on: the last line of its log, where that may be the cause. ""
// for one that was ended from outside (SIGKILL, SIGTERM, SIGINT, SIGHUP): what it said last is not
// why.
std::string quote_of(const ObservedReplica& replica);

// Why one that lives is not ready, where the cluster says it: "Unschedulable: 0/3 nodes are
// available: ...", with at most 512 bytes of its words, made safe as clean_line() has it; else "".
std::string describe_obstacle(const ObservedReplica& replica);

// A line of a replica's log made safe for a status: at most 768 bytes, cut in the middle
// (common/shorten.h), valid UTF-8, no control characters; what is not is replaced by '?'.
std::string clean_line(const std::string& line);

// A message made safe for a condition: at most `most` bytes, cut in the middle, valid UTF-8. A
// server that refuses something may quote all of it, and a status with a message that is too long
// is refused itself.
inline constexpr size_t kLongestMessage = 4096;
std::string bounded(const std::string& message, size_t most = kLongestMessage);

}  // namespace muster::plan
