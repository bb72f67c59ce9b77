#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "operator/kube/api/objects.h"
#include "operator/kube/http/transport.h"

namespace muster::cmd {

struct PodLogLine {
  int64_t time;  // nanoseconds since 1970, by the clock of the pod's node; never steps back
  std::string text;
};

// The log of a pod's container that counts, read through the API server. Each line is returned
// once, even if the connection breaks.
class PodLog {
 public:
  // `transport` must outlive this object.
  PodLog(kube::Transport& transport, const kube::Pod& pod);

  using OnLine = std::function<void(const PodLogLine&)>;
  // Reads the lines since the last call; the first call reads only the last `tail` lines, unless
  // `tail` is negative. Throws Unavailable if the log cannot be read; a pod that has gone has no
  // more lines.
  void read(int tail, const OnLine& on_line);
  // Reads like read(), and then follows the log until the container ends, the connection breaks or
  // `stop`. Returns why the log cannot be read, or "".
  std::string follow(int tail, const OnLine& on_line, const std::stop_token& stop);

 private:
  kube::Request request(int tail) const;
  void take(std::string_view line, const OnLine& on_line);

  kube::Transport& transport_;
  const std::string pod_;
  const std::string path_;
  const std::string container_;
  std::optional<int64_t> last_;  // time of the last line
};

// Reads the time that nodes write before log lines, for example
// "2026-01-02T03:04:05.123456789+01:00"; returns nothing for another text.
std::optional<int64_t> log_time(std::string_view text);

}  // namespace muster::cmd
