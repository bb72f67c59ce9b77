#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <thread>
#include <vector>

#include "common/threads/mutex.h"
#include "trainer/data/batches/batcher.h"
#include "trainer/data/order/cursor.h"

namespace muster::data {

// Batches that the pipeline's threads make ahead of the reader, for data that are not ready in
// memory. The batches depend only on the requested cursors. The speed depends on predicting the
// next cursor: after a cursor that Cursor::next() does not predict, the pipeline begins anew. It
// has one reader. Allocates nothing after the first batches.
class Pipeline {
 public:
  // Holds `ahead` batches (at least 1) besides the one being read. The pipeline owns the batcher.
  // Each of the threads (at least 1) makes whole batches.
  Pipeline(Batcher batcher, size_t ahead, int threads = 1);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Waits until the batch is ready, and returns it. The batch is valid until the next call. Throws
  // the errors of the batcher.
  const compute::Batch& take(const Cursor& wanted);
  // Does the same if the batch is ready and was predicted; otherwise returns null and changes
  // nothing.
  const compute::Batch* take_if_ready(const Cursor& wanted);

  // Returns the memory of all batches' features.
  std::vector<std::span<const std::byte>> memory();

 private:
  enum class State { empty, being_filled, ready };
  struct Slot {
    BatchBuffer buffer;
    Cursor at;
    State state = State::empty;
    std::exception_ptr failure;  // set if the filling failed
  };

  void run();
  bool has_room() const MUSTER_REQUIRES(mutex_);
  void aim_at(const Cursor& wanted) MUSTER_REQUIRES(mutex_);
  void wake_one() MUSTER_REQUIRES(mutex_);
  const compute::Batch& take_first() MUSTER_REQUIRES(mutex_);
  Slot& slot(size_t after_head) MUSTER_REQUIRES(mutex_) {
    return slots_[(head_ + after_head) % slots_.size()];
  }

  Mutex planning_;   // taken before mutex_
  Batcher batcher_;  // its plans are made with planning_ held
  const uint64_t batches_per_epoch_;

  Mutex mutex_;
  ConditionVariable room_, filled_;
  // A ring: the claimed slots begin at head_; the taken slot is before it. While a slot is being
  // filled, only the filling thread uses its buffer, without the mutex.
  std::vector<Slot> slots_ MUSTER_GUARDED_BY(mutex_);
  size_t head_ MUSTER_GUARDED_BY(mutex_) = 0;
  size_t claimed_ MUSTER_GUARDED_BY(mutex_) = 0;  // number of slots being filled or ready
  bool taken_ MUSTER_GUARDED_BY(mutex_) = false;
  bool aimed_ MUSTER_GUARDED_BY(mutex_) = false;
  bool idle_ MUSTER_GUARDED_BY(mutex_) = false;  // a thread waits for room
  Cursor next_ MUSTER_GUARDED_BY(mutex_);        // cursor for the slot after the claimed slots
  uint64_t aims_ MUSTER_GUARDED_BY(mutex_) = 0;  // batches filled for an earlier aim are dropped
  bool stop_ MUSTER_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // the last member, because threads use the others
};

}  // namespace muster::data
