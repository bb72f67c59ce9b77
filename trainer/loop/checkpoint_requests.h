#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace muster::loop {

// Watches the file through which somebody outside asks rank 0 for a checkpoint
// (MUSTER_CHECKPOINT_REQUEST), on a thread of its own. The file's text, as far as it counts
// (common/job/checkpoint_request.h), is the request's name, and each new text is a request; no
// file, or an empty one, asks for nothing.
class CheckpointRequests {
 public:
  // Calls `ask` with each new text, at first with the one that is there, and with the same text
  // again twice a minute, for a checkpoint that was asked for may fail.
  CheckpointRequests(std::filesystem::path file,
                     std::function<void(const std::string& request)> ask);

 private:
  void watch(const std::stop_token& stop) const;

  const std::filesystem::path file_;
  const std::function<void(const std::string& request)> ask_;
  std::jthread thread_;
};

}  // namespace muster::loop
