#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "common/system/descriptor.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::test {

// A `muster` process, and what it writes to stdout and stderr.
class Muster {
 public:
  // `limits` are those of setrlimit(), by RLIMIT_*.
  Muster(const std::vector<std::string>& arguments, const std::filesystem::path& directory,
         const std::map<std::string, std::string>& environment,
         const std::map<int, uint64_t>& limits = {});
  ~Muster();
  Muster(const Muster&) = delete;
  Muster& operator=(const Muster&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Reads until `text` has been written; fails the test if the process ends before.
  void await_output(const std::string& text);
  // Reads on; fails the test if the process has ended.
  void await_more();
  // Whether the process has ended; does not wait, and leaves its exit code to wait().
  bool has_ended() const;
  // Reads all that is left and returns the exit code, 128 + n for a signal.
  int wait();
  const std::string& output() const { return output_; }

 private:
  bool read_some();

  pid_t pid_ = 0;
  Descriptor pipe_;
  std::string output_;
};

// A job of scripts in a folder of its own. Scripts tell the test what happens by lines into the
// FIFO $EVENTS, and wait for the test by reading the FIFO $GATE.
class ScriptJob {
 public:
  // `manifest` is written as job.yaml.
  explicit ScriptJob(const std::string& manifest);

  std::unique_ptr<Muster> muster(std::vector<std::string> arguments);
  // `muster run job.yaml --directory run`.
  std::unique_ptr<Muster> run() { return muster({"run", "job.yaml", "--directory", "run"}); }

  // The next line a script wrote; fails the test after a minute.
  std::string next_event();
  // As many, sorted.
  std::vector<std::string> next_events(int count);
  // Lets one script go on.
  void open_gate();

  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path directory() const { return folder() / "run"; }
  // job.json.
  Json state() const;
  std::string log(const std::string& replica) const;
  // The process of a replica of the run in `directory`, as `muster status` says it.
  pid_t pid_of(const std::string& directory, const std::string& replica);
  void set(const std::string& variable, const std::string& value) {
    environment_[variable] = value;
  }
  // Sets a limit of the `muster` that are started from now on, by RLIMIT_*.
  void limit(int resource, uint64_t most) { limits_[resource] = most; }

 private:
  TemporaryFolder folder_;
  std::map<std::string, std::string> environment_;
  std::map<int, uint64_t> limits_;
  Descriptor events_;
  Descriptor gate_;
  std::string unread_;
};

// A manifest of scripts: role -> fields of its spec as YAML flow, e.g.
// {"chief", script("exit 0")}; `spec` are further lines of the spec.
std::string manifest(const std::vector<std::pair<std::string, std::string>>& roles,
                     const std::string& spec = "");
// A replica spec, as YAML flow, that runs `text` by sh; `more` are fields of the spec, as
// "replicas: 2".
std::string script(const std::string& text, const std::string& more = "",
                   const std::string& pod = "");

// Waits until the process has ended; fails the test after a minute.
void await_end_of(pid_t pid);
// Waits until there is such a file; fails the test after a minute.
void await_file(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);

}  // namespace muster::test
