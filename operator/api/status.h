#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "operator/api/training_job.h"

namespace muster::api {

// status as the API shows it, with what overview.h makes of it; to_training_job reads it back
// without loss.
Json to_json(const JobStatus& status);

// The `status` object as to_json writes it; null or anything malformed reads as the default.
JobStatus to_job_status(const Json& value);

// "2026-11-21T12:00:00.250Z" (RFC 3339 in UTC, milliseconds always shown) and back. Reads
// Kubernetes' times without a fraction too; nothing for other text.
std::string format_time(Time time);
std::optional<Time> parse_time(const std::string& text);
// The fraction of a second that stands at `at`, such as ".25", and 0 for anything else; moves `at`
// past it. Digits beyond nanoseconds say nothing.
std::chrono::nanoseconds parse_fraction(std::string_view text, size_t& at);

// The wall clock's.
Time wall_time();

}  // namespace muster::api
