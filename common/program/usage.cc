#include "common/program/usage.h"

#include "common/documents/problem.h"
#include "common/text/nearest.h"

namespace muster {

std::string unknown_command(const std::vector<std::string>& words,
                            const std::vector<std::string>& commands) {
  if (words.empty() || words.front().starts_with('-')) return "";
  const std::string hint = did_you_mean(words.front(), commands);
  return "expected one of the commands " + join(commands) + ", found \"" + words.front() + "\"" +
         (hint.empty() ? "" : "; " + hint);
}

}  // namespace muster
