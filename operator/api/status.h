#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "operator/api/training_job.h"

namespace muster::api {

// Returns the status as the API shows it, with the texts of overview.h; to_training_job reads it
// back without loss.
Json to_json(const JobStatus& status);

// Reads the `status` object that to_json writes; null or anything malformed reads as the default.
JobStatus to_job_status(const Json& value);

// Write and read times such as "2026-11-21T12:00:00.250Z" (RFC 3339 in UTC, milliseconds always
// shown). parse_time also reads Kubernetes' times without a fraction; it returns nothing for other
// text.
std::string format_time(Time time);
std::optional<Time> parse_time(const std::string& text);
// Returns the fraction of a second at `at`, such as ".25", and 0 for anything else; moves `at` past
// it. Digits beyond nanoseconds are ignored.
std::chrono::nanoseconds parse_fraction(std::string_view text, size_t& at);

// Returns the time of the wall clock.
Time wall_time();
// Returns the time at which this was called first, moved on by the clock that runs since the
// machine was booted, also while it sleeps: differences of two such times are right although
// somebody sets the machine's clock meanwhile.
Time steady_time();

}  // namespace muster::api
