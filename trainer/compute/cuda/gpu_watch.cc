#include "trainer/compute/cuda/gpu_watch.h"

#include <thread>
#include <utility>

#include "common/error.h"
#include "common/threads/mutex.h"

namespace muster::compute::cuda {

using Clock = std::chrono::steady_clock;

// Belongs to the watch and to its thread, which may outlive it.
struct GpuWatch::State {
  Times times;
  LookAtGpus look;
  Mutex mutex;
  ConditionVariable changed;
  bool ended MUSTER_GUARDED_BY(mutex) = false;
  bool looking MUSTER_GUARDED_BY(mutex) = false;
  std::vector<GpuUse> seen MUSTER_GUARDED_BY(mutex);
  Clock::time_point when MUSTER_GUARDED_BY(mutex);

  void run() {
    MutexLock lock(mutex);
    while (!ended) {
      looking = true;
      lock.unlock();
      std::vector<GpuUse> found;
      try {
        found = look();
      } catch (const Unavailable&) {  // then nothing is known
      }
      lock.lock();
      seen = std::move(found);
      when = Clock::now();
      looking = false;
      changed.notify_all();
      changed.wait_for(lock, times.period, [&]() MUSTER_REQUIRES(mutex) { return ended; });
    }
  }
};

GpuWatch::GpuWatch(LookAtGpus look, const Times& times) : state_(std::make_shared<State>()) {
  state_->times = times;
  state_->look = std::move(look);
  std::thread([state = state_] { state->run(); }).detach();
}

GpuWatch::~GpuWatch() {
  MutexLock lock(state_->mutex);
  state_->ended = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, state_->times.patience,
                           [&]() MUSTER_REQUIRES(state_->mutex) { return !state_->looking; });
}

std::vector<GpuUse> GpuWatch::seen() const {
  const MutexLock lock(state_->mutex);
  if (Clock::now() - state_->when > state_->times.fresh) return {};
  return state_->seen;
}

}  // namespace muster::compute::cuda
