#pragma once

#include <string>

#include "operator/plan/values.h"

namespace muster::plan {

// Returns a replica's name, such as "worker-1".
std::string describe(const api::TrainingJob& job, Role role, int index);

// Describes the end of a replica, for messages: `worker-1 ended with exit code 65 (malformed
// input): "last line"`.
std::string describe_end(const api::TrainingJob& job, const ObservedReplica& replica);

// Describes the restarts in place since the last look at a replica: `worker-1 was restarted in
// place 2 times, last after exit code 137 (terminated (SIGKILL)); training went on 2.1 s after
// that`.
std::string describe_in_place(const api::TrainingJob& job, const ObservedReplica& replica,
                              int times);

// Returns the part of describe_end() from ": " on: the last line of the replica's log, if this line
// may be the cause. Returns "" for a replica that was ended from outside (SIGKILL, SIGTERM, SIGINT,
// SIGHUP): its last line is not the cause.
std::string quote_of(const ObservedReplica& replica);

// Returns why a living replica is not ready, if the cluster says it: "Unschedulable: 0/3 nodes are
// available: ...", with at most 512 bytes of the cluster's words, made safe as by clean_line();
// else "".
std::string describe_obstacle(const ObservedReplica& replica);

// Makes a line of a replica's log safe for a status: at most 768 bytes, cut in the middle
// (common/text/shorten.h), valid UTF-8, no control characters; bad bytes are replaced by '?'.
std::string clean_line(const std::string& line);

// Makes a message safe for a condition: at most `most` bytes, cut in the middle, valid UTF-8. A
// server may quote the whole object that it refuses, and it would refuse a status with such a long
// message.
inline constexpr size_t kLongestMessage = 4096;
std::string bounded(const std::string& message, size_t most = kLongestMessage);

}  // namespace muster::plan
