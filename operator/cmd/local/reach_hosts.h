#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "operator/cmd/job/job_source.h"
#include "operator/local/copy/copy_list.h"
#include "operator/local/hosts/hosts_file.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// Copies to the hosts what the file says, finds out which hosts can be used, and makes the job's
// replicas run there. Shows the progress of copying on `out`. Adds a note for each host that
// something was copied to, and for each host that cannot be used. Precondition: the job's directory
// exists and is locked.
void reach_hosts(local::HostsFile file, const std::vector<local::Copy>& copies, JobSource& source,
                 local::JobState& state, std::vector<std::string>& notes, FILE* out);

}  // namespace muster::cmd
