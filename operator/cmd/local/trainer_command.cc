#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>

#include "common/error.h"
#include "common/system/system_words.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/local/commands.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCheckpoint = "--checkpoint";

// Returns the value of --checkpoint in `arguments`, wherever it stands.
std::string* checkpoint_in(std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.starts_with(std::string(kCheckpoint) + "=")) {
      std::string value = argument.substr(kCheckpoint.size() + 1);
      arguments[i] = kCheckpoint;
      return &*arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, value);
    }
    if (argument == kCheckpoint && i + 1 < arguments.size()) return &arguments[i + 1];
  }
  return nullptr;
}

// Returns the job's directory that contains `path` or is `path` itself.
std::optional<local::JobDirectory> enclosing_job(fs::path path) {
  for (; path.has_relative_path(); path = path.parent_path()) {
    const local::JobDirectory directory(path);
    std::error_code error;
    if (fs::is_regular_file(directory.state(), error)) return directory;
  }
  return std::nullopt;
}

void resolve_checkpoint(std::vector<std::string>& arguments) {
  std::string* checkpoint = checkpoint_in(arguments);
  if (checkpoint == nullptr || checkpoint->empty()) return;
  const local::JobDirectory named{fs::path(*checkpoint)};  // absolute and normal
  const std::optional<local::JobDirectory> job = enclosing_job(named.root());
  if (!job) return;
  *checkpoint = named.root();
  const std::optional<local::JobState> state = local::load_state(*job);
  std::error_code error;
  fs::current_path(state->working_directory, error);
  if (error) {
    throw Invalid(shown(job->root()) + ": expected the folder of its manifest, " +
                  state->working_directory + ": " + error.message());
  }
}

// Relative paths of data begin at the folder of the job's manifest; relative paths of pictures
// begin at the working directory.
void add_called_in(const std::string& command, std::vector<std::string>& arguments) {
  if (command != "predict") return;
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (!error) arguments.insert(arguments.begin(), {"--called-in", here.string()});
}

}  // namespace

int exec_trainer(const std::string& command, std::vector<std::string> arguments) {
  std::string trainer = require_trainer().string();
  add_called_in(command, arguments);
  resolve_checkpoint(arguments);
  std::string program = "muster";  // the name shown in help and errors
  std::vector<char*> argv = {program.data(), const_cast<char*>(command.c_str())};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(trainer.c_str(), argv.data());
  throw Unavailable("cannot run " + trainer + ": " + system_words(errno));
}

}  // namespace muster::cmd
