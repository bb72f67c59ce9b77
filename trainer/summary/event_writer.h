#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "common/threads/mutex.h"

namespace muster::summary {

// A TensorBoard event file with native scalars and images. Its format is TFRecord framing around
// tensorflow.Event. Each start makes a new file,
// "events.out.tfevents.<seconds>.<host>.<pid>.<uid>". A disk error is logged once and never stops
// training. Thread-safe.
class EventWriter {
 public:
  explicit EventWriter(const std::filesystem::path& directory,
                       std::chrono::milliseconds flush_every = std::chrono::seconds(2));
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // Adds a scalar. Values that are not finite are written unchanged: TensorBoard marks them. The
  // file is written when `flush_every` has passed since the last time, at flush() and at the end.
  void scalar(const std::string& tag, uint64_t step, double value);
  // Adds an image; `png` is the content of its PNG file.
  void image(const std::string& tag, uint64_t step, std::string_view png, size_t height,
             size_t width);
  void flush();
  // Returns the file's path; empty if it could not be opened.
  const std::filesystem::path& path() const { return path_; }

 private:
  void add(const std::string& event);
  void record(const std::string& event) MUSTER_REQUIRES(mutex_);
  void flush_locked() MUSTER_REQUIRES(mutex_);
  void fail(const std::string& reason) MUSTER_REQUIRES(mutex_);

  std::filesystem::path path_;  // set by the constructor
  const std::chrono::milliseconds flush_every_;
  Mutex mutex_;
  std::ofstream file_ MUSTER_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point flushed_ MUSTER_GUARDED_BY(mutex_);
  bool failed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::summary
