#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/cmd/show/log_merge.h"

namespace muster::cmd {

// What a log line of muster-trainer warns of, in text or JSON, with its fields in text; "" if it is
// no warning. (What a replica ends with is an error, and told by the event of its end.)
std::string warning_in(const std::string& line);

// The warnings that replicas write into their logs, for `muster run` to show.
class Warnings {
 public:
  // What stands in the logs of `folder` already is of earlier runs, and left out.
  explicit Warnings(std::filesystem::path folder);

  // Those since the last call, as "chief-0: ..."; what one replica says and another repeats, once.
  std::vector<std::string> read();

 private:
  void find_logs(bool skip);

  const std::filesystem::path folder_;
  std::map<std::string, LogFile> logs_;
  std::set<std::string> told_;
};

}  // namespace muster::cmd
