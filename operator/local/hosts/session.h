#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/system/descriptor.h"

namespace muster::local {

// A child process that is talked to: by pipes that are not blocking. It never outlives the thread
// that constructed this object, nor the object.
class Session {
 public:
  static constexpr int kSshFailed = 255;  // ssh ends so where the remote command has no exit code
  enum class Output { pipe, ours };       // ours: it writes to this process's standard output

  // Throws Unavailable if no process can be made. A command that cannot be executed ends with 127
  // or 126, and says so in its errors.
  Session(const std::vector<std::string>& command, Output output);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Sends as much of `unsent` as it takes now, and cuts that off. Does nothing once the input is
  // closed, which is also done if the process takes no more.
  void send(std::string& unsent);
  void close_input() { input_.reset(); }

  const Descriptor& input() const { return input_; }
  const Descriptor& output() const { return output_; }
  const Descriptor& errors() const { return errors_; }

  // Appends to `text` what can be read now from output() or errors(). Returns false at its end.
  static bool read_some(const Descriptor& from, std::string& text);

  // Kills it if it does not end by itself in a moment, and returns its exit code, 128 + n for
  // signal n.
  int end();
  // Waits for its end.
  int wait();

 private:
  Descriptor input_, output_, errors_;
  pid_t pid_ = 0;  // 0: its end has been waited for
};

}  // namespace muster::local
