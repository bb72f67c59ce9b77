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

// Batches that threads of its own make ahead of their reader, for data that do not lie ready in
// memory. Its batches depend only on the cursors that are asked for. Its speed depends on the
// prediction of the next cursor: after one that Cursor::next does not return, it begins anew. It
// has one reader. Allocates nothing after the first batches.
class Pipeline {
 public:
  // Holds `ahead` batches (at least 1) besides the one being read. The pipeline owns the batcher.
  // Each of the threads (at least 1) makes whole batches.
  Pipeline(Batcher batcher, size_t ahead, int threads = 1);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Waits until the batch is there, and returns it; it is valid until the next call. Throws what
  // the batcher throws.
  const compute::Batch& take(const Cursor& wanted);

 private:
  enum class State { empty, being_filled, ready };
  struct Slot {
    BatchBuffer buffer;
    Cursor at;
    State state = State::empty;
    std::exception_ptr failure;  // set if the filling failed
  };

  void run();
  bool has_room() const;
  void aim_at(const Cursor& wanted);
  std::exception_ptr fill(Slot& slot, std::unique_lock<std::mutex>& planning);
  Slot& slot(size_t after_head) { return slots_[(head_ + after_head) % slots_.size()]; }

  std::mutex planning_;  // taken before mutex_
  Batcher batcher_;      // planning_ guards its plans
  const uint64_t batches_per_epoch_;

  std::mutex mutex_;
  std::condition_variable room_, filled_;
  std::vector<Slot> slots_;  // a ring: the claimed ones from head_ on, the one taken before it
  size_t head_ = 0;
  size_t claimed_ = 0;  // being filled or ready
  bool taken_ = false;
  bool aimed_ = false;
  bool idle_ = false;  // a thread waits for room
  Cursor next_;        // for the slot behind the claimed ones
  uint64_t aims_ = 0;  // batches filled for an earlier aim are dropped
  bool stop_ = false;
  std::vector<std::thread> threads_;  // last: they use the rest
};

}  // namespace muster::data
