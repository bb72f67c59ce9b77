#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/descriptor.h"

namespace muster::local {

// A child process that is talked to: by pipes that are not blocking. It never outlives the thread
// that constructed this object, nor the object.
class Session {
 public:
  enum class Output { pipe, ours };  // ours: it writes to this process's standard output

  // Throws Unavailable if no process can be made. A command that cannot be executed ends with 127
  // or 126, and says so in its errors.
  Session(const std::vector<std::string>& command, Output output);
  ~Session();
  Session(Session&&) noexcept = default;
  Session& operator=(Session&&) = delete;

  Descriptor& input() { return input_; }
  const Descriptor& output() const { return output_; }
  const Descriptor& errors() const { return errors_; }

  // Kills it if it still runs, and returns its exit code, 128 + n for signal n.
  int end();
  // Waits for its end.
  int wait();

 private:
  struct Pid {
    explicit Pid(pid_t number = 0) : value(number) {}
    Pid(Pid&& other) noexcept : value(std::exchange(other.value, 0)) {}
    pid_t value;
  };
  Descriptor input_, output_, errors_;
  Pid pid_;
};

}  // namespace muster::local
