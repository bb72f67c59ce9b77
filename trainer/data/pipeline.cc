#include "trainer/data/pipeline.h"

#include <utility>

namespace muster::data {

Pipeline::Pipeline(Batcher batcher, size_t ahead)
    : batcher_(std::move(batcher)), batches_per_epoch_(batcher_.shards().batches_per_epoch()) {
  slots_.reserve(ahead + 1);
  for (size_t i = 0; i <= ahead; ++i) {
    slots_.push_back({{},
                      BatchBuffer(batcher_.dataset(), batcher_.shards().most_rows(),
                                  BatchBuffer::Features::copied)});
  }
  thread_ = std::thread([this] { run(); });
}

Pipeline::~Pipeline() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  room_.notify_one();
  thread_.join();
}

void Pipeline::aim_at(const Cursor& wanted) {
  next_ = wanted;
  ready_ = 0;
  aimed_ = true;
  ++aims_;
  failure_ = nullptr;
}

const compute::Batch& Pipeline::take(const Cursor& wanted) {
  std::unique_lock lock(mutex_);
  taken_ = false;
  const Cursor& foreseen = ready_ > 0 ? slots_[head_].at : next_;
  if (!aimed_ || foreseen != wanted) aim_at(wanted);
  // A wake-up for several batches costs no more than one for each would.
  if (idle_ && ready_ <= slots_.size() / 2) room_.notify_one();
  filled_.wait(lock, [&] { return ready_ > 0 || failure_; });
  if (ready_ == 0) std::rethrow_exception(failure_);
  const compute::Batch& batch = slots_[head_].buffer.batch();
  head_ = (head_ + 1) % slots_.size();
  --ready_;
  taken_ = true;
  return batch;
}

void Pipeline::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    idle_ = true;
    room_.wait(lock, [&] { return stop_ || (has_room() && !failure_); });
    idle_ = false;
    if (stop_) return;
    const Cursor cursor = next_;
    const uint64_t aim = aims_;
    Slot& slot = slots_[(head_ + ready_) % slots_.size()];
    lock.unlock();
    std::exception_ptr failure;
    try {
      batcher_.will_need(cursor.epoch, cursor.batch());
      batcher_.fill(slot.buffer, cursor.epoch, cursor.batch());
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (aim != aims_) continue;
    failure_ = failure;
    if (!failure) {
      slot.at = cursor;
      next_ = cursor.next(batches_per_epoch_);
      ++ready_;
    }
    if (ready_ == 1 || failure) filled_.notify_one();
  }
}

}  // namespace muster::data
