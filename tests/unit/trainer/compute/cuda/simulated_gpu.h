#pragma once

#include <memory>

#include "trainer/compute/cuda/gpu.h"

namespace muster::compute::testing {

// The order in which the threads of a simulated block run within a phase. A kernel's result must
// not depend on it.
enum class ThreadOrder { ascending, descending };

// Whether GPUs can be linked; nothing comes through broken links.
enum class Links { possible, broken, impossible };

// A GPU that is simulated on the host: its memory can be addressed only while its work is done,
// which is when somebody waits for it and not when it is asked for; kernels run as simulated
// blocks, and products of matrices by the CPU's kernels. Any access to its memory by the host
// crashes.
// Linked ones must be waited for by a thread each: work that they do together is done when all are
// waited for.
std::unique_ptr<cuda::Gpu> make_simulated_gpu(ThreadOrder order = ThreadOrder::ascending,
                                              Links links = Links::possible);

// From now on every wait for a simulated GPU throws DeviceError.
void lose(cuda::Gpu& gpu);

}  // namespace muster::compute::testing
