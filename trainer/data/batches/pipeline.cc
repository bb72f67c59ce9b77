#include "trainer/data/batches/pipeline.h"

#include <utility>

#include "common/threads/watched_work.h"

namespace muster::data {

namespace {

constexpr std::chrono::milliseconds kGlance{500};

// Returns the exception of `work`, or null.
template <class Work>
std::exception_ptr failure_of(const Work& work) {
  try {
    work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

Pipeline::Pipeline(Batcher batcher, size_t ahead, int threads)
    : batcher_(std::move(batcher)), batches_per_epoch_(batcher_.shards().batches_per_epoch()) {
  slots_.reserve(ahead + 1);
  for (size_t i = 0; i <= ahead; ++i) {
    slots_.push_back({BatchBuffer(batcher_.dataset(), batcher_.shards().most_rows(),
                                  BatchBuffer::Features::copied),
                      {},
                      State::empty,
                      nullptr});
  }
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

Pipeline::~Pipeline() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  room_.notify_one();
  for (std::thread& thread : threads_) thread.join();
}

void Pipeline::aim_at(const Cursor& wanted) {
  next_ = wanted;
  claimed_ = 0;
  aimed_ = true;
  ++aims_;
}

const compute::Batch& Pipeline::take(const Cursor& wanted) {
  MutexLock lock(mutex_);
  taken_ = false;
  const Cursor& foreseen = claimed_ > 0 ? slot(0).at : next_;
  if (!aimed_ || foreseen != wanted) aim_at(wanted);
  wake_one();
  // The loading threads are watched separately; a thread that waits for them gives signs of life.
  while (!filled_.wait_for(lock, kGlance, [&]() MUSTER_REQUIRES(mutex_) {
    return claimed_ > 0 && slot(0).state == State::ready;
  }))
    WatchedWork::beat();
  if (slot(0).failure) {
    aimed_ = false;
    std::rethrow_exception(slot(0).failure);
  }
  return take_first();
}

const compute::Batch* Pipeline::take_if_ready(const Cursor& wanted) {
  const MutexLock lock(mutex_);
  const bool ready = aimed_ && claimed_ > 0 && slot(0).at == wanted &&
                     slot(0).state == State::ready && !slot(0).failure;
  if (!ready) return nullptr;
  wake_one();
  return &take_first();
}

// Wakes a thread only when there is room for several batches: a wake-up for each would cost more.
void Pipeline::wake_one() {
  if (idle_ && claimed_ <= slots_.size() / 2) room_.notify_one();
}

const compute::Batch& Pipeline::take_first() {
  const compute::Batch& batch = slot(0).buffer.batch();
  head_ = (head_ + 1) % slots_.size();
  --claimed_;
  taken_ = true;
  return batch;
}

std::vector<std::span<const std::byte>> Pipeline::memory() {
  const MutexLock lock(mutex_);
  std::vector<std::span<const std::byte>> all;
  for (const Slot& one : slots_) all.push_back(one.buffer.memory());
  return all;
}

// Whether a slot is free. A slot that is still being filled for an earlier aim is not free.
bool Pipeline::has_room() const {
  return aimed_ && claimed_ + (taken_ ? 1 : 0) < slots_.size() &&
         slots_[(head_ + claimed_) % slots_.size()].state != State::being_filled;
}

void Pipeline::run() {
  for (;;) {
    Slot* mine = nullptr;
    uint64_t aim = 0;
    std::exception_ptr failure;
    {
      // One thread at a time waits for room and plans, so that plans are made in the order of the
      // batches.
      const MutexLock planning(planning_);
      MutexLock lock(mutex_);
      idle_ = true;
      room_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return stop_ || has_room(); });
      idle_ = false;
      if (stop_) return;
      mine = &slot(claimed_++);
      mine->at = next_;
      mine->state = State::being_filled;
      next_ = mine->at.next(batches_per_epoch_);
      aim = aims_;
      lock.unlock();
      failure = failure_of([&] { batcher_.plan(mine->buffer, mine->at.epoch, mine->at.batch()); });
    }
    if (!failure) {
      const WatchedWork watched(WatchedWork::Kind::computing, "loading samples");
      failure = failure_of([&] { batcher_.load(mine->buffer); });
    }
    const MutexLock lock(mutex_);
    mine->failure = failure;
    mine->state = aim == aims_ ? State::ready : State::empty;
    if (mine->state == State::empty) room_.notify_one();
    filled_.notify_one();
  }
}

}  // namespace muster::data
