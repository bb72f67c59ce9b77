#include "trainer/compute/hosted_engine.h"

#include <algorithm>

#include "common/threads/mutex.h"

namespace muster::compute {

HostedEngine::HostedEngine(Engine& engine)
    : engine_(engine), addressable_(!engine.parameters().host_view().empty()) {}

HostedEngine::~HostedEngine() {
  release();
}

void HostedEngine::load(std::span<float> parameters) {
  parameters_ = parameters;
  if (!addressable_) {
    engine_.parameters().write({0, parameters.size()}, parameters).wait();
    return;
  }
  HostMemory view(parameters);
  engine_.use(view, nullptr);
}

void HostedEngine::release() {
  if (addressable_ && !parameters_.empty()) engine_.use_own();
  parameters_ = {};
}

LossSums HostedEngine::compute_gradients(const Batch& batch, std::span<float> gradients,
                                         const Engine::OnComplete& on_complete) {
  if (!addressable_) return compute_and_copy(batch, gradients, on_complete);
  HostMemory parameters(parameters_), target(gradients);
  engine_.use(parameters, &target);
  return engine_.compute_gradients(batch, on_complete);
}

LossSums HostedEngine::compute_and_copy(const Batch& batch, std::span<float> gradients,
                                        const Engine::OnComplete& on_complete) {
  struct {
    Mutex mutex;
    size_t end MUSTER_GUARDED_BY(mutex) = 0;
  } copied;
  const auto copy = [&](size_t end) {
    const MutexLock lock(copied.mutex);
    if (end <= copied.end) return;
    const auto to = gradients.subspan(copied.end, end - copied.end);
    engine_.gradients().read({copied.end, end}, to).wait();
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
