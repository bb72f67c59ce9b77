#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace muster::loop {

// Watches, on a separate thread, the file in which a user or the operator asks rank 0 for a
// checkpoint (MUSTER_CHECKPOINT_REQUEST). The beginning of the file's text (counted_request() of
// common/job/checkpoint_request.h) is the request's name. Each new text is a request; a missing or
// empty file is none.
class CheckpointRequests {
 public:
  // Calls `ask` with the text that is there at the beginning and with each new text. Repeats the
  // same text twice a minute, because a requested checkpoint may fail.
  CheckpointRequests(std::filesystem::path file,
                     std::function<void(const std::string& request)> ask);

 private:
  void watch(const std::stop_token& stop) const;

  const std::filesystem::path file_;
  const std::function<void(const std::string& request)> ask_;
  std::jthread thread_;
};

}  // namespace muster::loop
