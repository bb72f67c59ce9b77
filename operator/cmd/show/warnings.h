#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/cmd/show/log_merge.h"

namespace muster::cmd {

// Returns the warning in a log line of muster-trainer (text or JSON); a text keeps its fields.
// Returns "" if the line is not a warning. (An error is not returned: the replica ends with it, and
// the event of its end reports it.)
std::string warning_in(const std::string& line);

// The warnings that replicas write into their logs, for `muster run` to show.
class Warnings {
 public:
  // Skips the lines already in the logs of `folder`, which come from earlier runs.
  explicit Warnings(std::filesystem::path folder);

  // Returns the warnings since the last call, as "chief-0: ..."; a warning that several replicas
  // log is returned once.
  std::vector<std::string> read();

 private:
  void find_logs(bool skip);

  const std::filesystem::path folder_;
  std::map<std::string, LogFile> logs_;
  std::set<std::string> told_;
};

}  // namespace muster::cmd
