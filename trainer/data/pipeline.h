#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/data/batcher.h"
#include "trainer/data/cursor.h"

namespace muster::data {

// Batches copied ahead of their reader by a thread of its own, for data that do not lie in memory.
// What it gives depends on what is asked for alone; how fast, on how well the next cursor was
// foreseen: after one that Cursor::next does not lead to it begins anew. One reader. Allocates
// nothing after construction.
class Pipeline {
 public:
  // Holds `ahead` batches (at least 1) besides the one being read. The batcher is its own.
  Pipeline(Batcher batcher, size_t ahead);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Waits until it is there; valid until the next call. Throws what the batcher throws.
  const compute::Batch& take(const Cursor& wanted);

 private:
  struct Slot {
    Cursor at;
    BatchBuffer buffer;
  };

  void run();
  bool has_room() const { return aimed_ && ready_ + (taken_ ? 1 : 0) < slots_.size(); }
  void aim_at(const Cursor& wanted);

  Batcher batcher_;  // of the thread
  const uint64_t batches_per_epoch_;
  std::vector<Slot> slots_;  // a ring: the ready ones from head_ on, the one taken before it

  std::mutex mutex_;
  std::condition_variable room_, filled_;
  size_t head_ = 0;
  size_t ready_ = 0;
  bool taken_ = false;
  bool aimed_ = false;
  bool idle_ = false;  // the thread waits for room
  Cursor next_;        // of the slot behind the ready ones
  uint64_t aims_ = 0;  // what is filled for an earlier one is dropped
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace muster::data
