#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/system/descriptor.h"

namespace muster::local {

// A child process with non-blocking pipes. The process never outlives this object or the thread
// that constructed it.
class Session {
 public:
  static constexpr int kSshFailed = 255;  // exit code of ssh if the remote command has none
  enum class Output { pipe, ours };       // ours: this process's standard output

  // Throws Unavailable if no process can be made. A command that cannot be executed ends with 127
  // or 126, and writes the error to errors().
  Session(const std::vector<std::string>& command, Output output);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Sends as much of `unsent` as the process accepts now, and removes the sent part. Does nothing
  // once the input is closed. If the process accepts no more input, the input is closed.
  void send(std::string& unsent);
  void close_input() { input_.reset(); }

  const Descriptor& input() const { return input_; }
  const Descriptor& output() const { return output_; }
  const Descriptor& errors() const { return errors_; }

  // Appends to `text` everything that can be read now from output() or errors(). Returns false at
  // the end of the stream.
  static bool read_some(const Descriptor& from, std::string& text);

  // Kills the process if it does not end by itself in a moment, and returns its exit code, 128 + n
  // for signal n.
  int end();
  // Waits for the end of the process, and returns its exit code.
  int wait();

 private:
  Descriptor input_, output_, errors_;
  pid_t pid_ = 0;  // 0: the process has been waited for
};

}  // namespace muster::local
