#pragma once

#include <atomic>

namespace muster::compute::testing {

// A stream of the fake CUDA: the work that is asked of it and not done.
struct FakeStream {
  std::atomic<int> busy{0};
};

// Tests call these functions of the fake library besides NCCL's own.
using CountCommunicators = int();  // those that are made and not aborted
using FailAll = void();            // makes all communicators fail from here on

}  // namespace muster::compute::testing
