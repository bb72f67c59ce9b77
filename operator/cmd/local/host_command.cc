#include "common/error.h"
#include "common/exit_code.h"
#include "operator/cmd/local/commands.h"
#include "operator/local/hosts/agent.h"
#include "operator/local/hosts/link.h"

namespace muster::cmd {

int serve_host(const std::string& action, const std::filesystem::path& file) {
  if (action == "survey") return local::answer_survey(find_trainer());
  if (action == "run") return local::run_for_another_host(find_trainer());
  if (action == "receive") return local::receive_copies_here();
  if (file.empty()) throw Invalid("muster host link: expected a file, found none", kUsage);
  return local::run_link(file);
}

}  // namespace muster::cmd
