#include "trainer/compute/hosted_engine.h"

#include <algorithm>

#include "common/threads/mutex.h"

namespace muster::compute {

HostedEngine::HostedEngine(Engine& engine)
    : engine_(engine), addressable_(engine.parameters().floats().is_on_host()) {}

HostedEngine::~HostedEngine() {
  release();
}

void HostedEngine::load(PlacedFloats parameters) {
  parameters_ = parameters;
  if (!addressable_) {
    engine_.parameters().write({0, parameters.size()}, parameters).wait();
    return;
  }
  HostMemory view(parameters.host());
  engine_.use(view, nullptr);
}

void HostedEngine::release() {
  if (addressable_ && !parameters_.empty()) engine_.use_own();
  parameters_ = {};
}

LossSums HostedEngine::compute_gradients(const Batch& batch, PlacedFloats gradients,
                                         const Engine::OnComplete& on_complete) {
  if (!addressable_) return compute_and_copy(batch, gradients, on_complete);
  HostMemory parameters(parameters_.host()), target(gradients.host());
  engine_.use(parameters, &target);
  return engine_.compute_gradients(batch, on_complete);
}

LossSums HostedEngine::compute_and_copy(const Batch& batch, PlacedFloats gradients,
                                        const Engine::OnComplete& on_complete) {
  struct {
    Mutex mutex;
    size_t end MUSTER_GUARDED_BY(mutex) = 0;
  } copied;
  const auto copy = [&](size_t end) {
    const MutexLock lock(copied.mutex);
    if (end <= copied.end) return;
    const Range range{copied.end, end};
    engine_.gradients().read(range, gradients.part(range)).wait();
    copied.end = end;
  };
  LossSums sums;
  if (on_complete) {
    sums = engine_.compute_gradients(batch, [&](size_t end) {
      copy(end);
      on_complete(end);
    });
  } else {
    sums = engine_.compute_gradients(batch);
  }
  copy(gradients.size());
  return sums;
}

}  // namespace muster::compute
