#pragma once

#include <string>

#include "common/documents/document.h"

namespace muster::cmd {

// Summaries (summary.h) as text for people, in the same form for a local run and for a job on a
// cluster. Null values are left out.

// Returns a line for each known value, with its newline; "" if nothing is known.
std::string summary_rows(const Json& summary);

// Returns "mnist: Succeeded after 12.3 s", and summary_rows(); no newline at its end.
std::string summary_text(const std::string& name, const Json& summary);

}  // namespace muster::cmd
