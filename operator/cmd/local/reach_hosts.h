#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "operator/cmd/job/job_source.h"
#include "operator/local/copy/copy_list.h"
#include "operator/local/hosts/hosts_file.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// Sends the hosts what the file says, finds out which of them can be used, and makes the job's
// replicas run there. Shows on `out` how far copying is. Adds a note for each host that was sent
// something, and for each that cannot be used. Precondition: the job's directory is there, and
// locked.
void reach_hosts(local::HostsFile file, const std::vector<local::Copy>& copies, JobSource& source,
                 local::JobState& state, std::vector<std::string>& notes, FILE* out);

}  // namespace muster::cmd
