#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "common/error.h"
#include "operator/cmd/commands.h"
#include "operator/cmd/job_source.h"

namespace muster::cmd {

int exec_trainer(const std::vector<std::string>& arguments) {
  const std::string trainer = require_trainer().string();
  std::vector<char*> argv = {const_cast<char*>(trainer.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(trainer.c_str(), argv.data());
  throw Unavailable("cannot run " + trainer + ": " + std::generic_category().message(errno));
}

}  // namespace muster::cmd
