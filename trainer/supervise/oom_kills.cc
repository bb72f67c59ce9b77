#include "trainer/supervise/oom_kills.h"

#include <fstream>
#include <string>

namespace muster::supervise {

uint64_t oom_kills(const std::filesystem::path& cgroup) {
  for (const char* file : {"memory.events", "memory/memory.oom_control"}) {
    std::ifstream lines(cgroup / file);
    std::string name;
    uint64_t count = 0;
    while (lines >> name >> count)
      if (name == "oom_kill") return count;
  }
  return 0;
}

}  // namespace muster::supervise
