#include "trainer/compute/cuda/gpu_watch.h"

#include <functional>
#include <memory>
#include <thread>

#include "common/error.h"
#include "common/threads/mutex.h"
#include "gtest/gtest.h"

namespace muster::compute::cuda {
namespace {

using std::chrono::milliseconds;

// GPUs of which one look after the other is allowed.
class Script {
 public:
  LookAtGpus look() {
    return [self = state_] {
      MutexLock lock(self->mutex);
      self->changed.wait(lock, [&]() MUSTER_REQUIRES(self->mutex) { return self->allowed > 0; });
      --self->allowed;
      ++self->looks;
      self->changed.notify_all();
      if (self->lost) throw Unavailable("lost");
      return std::vector<GpuUse>{{.utilization = self->looks}};
    };
  }
  void allow(bool lost = false) {
    MutexLock lock(state_->mutex);
    const int before = state_->looks;
    state_->lost = lost;
    ++state_->allowed;
    state_->changed.notify_all();
    state_->changed.wait(lock,
                         [&]() MUSTER_REQUIRES(state_->mutex) { return state_->looks > before; });
  }

 private:
  struct State {
    Mutex mutex;
    ConditionVariable changed;
    int allowed MUSTER_GUARDED_BY(mutex) = 0;
    int looks MUSTER_GUARDED_BY(mutex) = 0;
    bool lost MUSTER_GUARDED_BY(mutex) = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

void expect_soon(const std::function<bool()>& holds) {
  for (int i = 0; i < 20'000; ++i) {
    if (holds()) return;
    std::this_thread::sleep_for(milliseconds(1));
  }
  ADD_FAILURE() << "it has not become so";
}

constexpr GpuWatch::Times kTimes{
    .period = milliseconds(0), .fresh = milliseconds(1'000'000), .patience = milliseconds(1)};

TEST(GpuWatch, TellsWhatWasSeenLast) {
  Script script;
  const GpuWatch watch(script.look(), kTimes);
  EXPECT_TRUE(watch.seen().empty());
  for (const double number : {1, 2}) {
    script.allow();
    expect_soon([&] { return watch.seen() == std::vector<GpuUse>{{.utilization = number}}; });
  }
}

TEST(GpuWatch, TellsNothingOnceALookFails) {
  Script script;
  const GpuWatch watch(script.look(), kTimes);
  script.allow();
  expect_soon([&] { return !watch.seen().empty(); });
  script.allow(/*lost=*/true);
  expect_soon([&] { return watch.seen().empty(); });
}

TEST(GpuWatch, NeitherTellsNorEndsLateWhileALookHangs) {
  Script script;
  GpuWatch::Times times = kTimes;
  times.fresh = milliseconds(2000);
  const GpuWatch watch(script.look(), times);
  script.allow();
  expect_soon([&] { return !watch.seen().empty(); });
  expect_soon([&] { return watch.seen().empty(); });
}

}  // namespace
}  // namespace muster::compute::cuda
