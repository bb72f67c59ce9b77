#pragma once

#include <string>

#include "common/document.h"

namespace muster::cmd {

// A summary (summary.h) for people, of a run here and of a job on a cluster alike. What is null is
// left out.

// A line for each thing that is known, with its newline; "" where nothing is.
std::string summary_rows(const Json& summary);

// "mnist: Succeeded after 12.3 s", and summary_rows(); no newline at its end.
std::string summary_text(const std::string& name, const Json& summary);

}  // namespace muster::cmd
