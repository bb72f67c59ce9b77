#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace muster::summary {

// A TensorBoard event file with native scalars. Format: TFRecord framing around tensorflow.Event.
// A new file at each start, named "events.out.tfevents.<seconds>.<host>.<pid>.<uid>".
// An error of the disk is logged once and never stops training.
class EventWriter {
 public:
  explicit EventWriter(const std::filesystem::path& directory,
                       std::chrono::milliseconds flush_every = std::chrono::seconds(2));
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void scalar(const std::string& tag, uint64_t step, double value);
  void flush();

 private:
  void record(const std::string& event);
  std::ofstream file_;
  std::chrono::milliseconds flush_every_;
  std::chrono::steady_clock::time_point flushed_;
  bool failed_ = false;
};

}  // namespace muster::summary
