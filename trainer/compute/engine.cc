#include "trainer/compute/engine.h"

#include <stdexcept>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/threads/cpu_budget.h"
#include "trainer/compute/cpu/check/checked_kernels.h"
#include "trainer/compute/cpu/engine.h"
#include "trainer/compute/cpu/worthwhile_threads.h"
#include "trainer/compute/cuda/engine.h"
#include "trainer/compute/cuda/gpus.h"

namespace muster::compute {

std::unique_ptr<Engine> Engine::create(const ModelSpec& model, const EngineOptions& options) {
  if (options.device.kind == DeviceKind::cuda && options.device.ordinal >= cuda::gpu_count()) {
    throw Invalid(
        "device: expected one that this process can use, found " + to_string(options.device),
        kBadConfig);
  }
  if (options.max_rows < 1 || options.max_rows > (1 << 20)) {
    throw Invalid("batch size: expected 1 to 1048576 rows, found " +
                  std::to_string(options.max_rows));
  }
  if (options.threads < 0 || options.threads > 1024) {
    throw Invalid("threads: expected 0 to 1024, found " + std::to_string(options.threads));
  }
  Graph graph = build_graph(model);
  if (options.device.kind == DeviceKind::cuda) {
    return std::make_unique<cuda::CudaEngine>(std::move(graph), options,
                                              cuda::open_gpu(options.device.ordinal));
  }
  EngineOptions fixed = options;
  if (fixed.threads == 0) {
    fixed.threads = cpu::worthwhile_threads(graph, fixed.max_rows, cpu_budget());
  }
  return std::make_unique<cpu::CpuEngine>(std::move(graph), fixed, cpu::kernels());
}

void start_slots(const Optimizer& optimizer, Memory& parameters, std::span<Memory* const> slots) {
  HostView started_for(parameters);
  for (size_t i = 0; i < slots.size(); ++i) {
    HostView view(*slots[i]);
    optimizer.start_slot(i, started_for.values(), view.values());
    view.store();
  }
}

std::vector<std::unique_ptr<Memory>> allocate_slots(Engine& engine, const Optimizer& optimizer) {
  std::vector<std::unique_ptr<Memory>> slots;
  std::vector<Memory*> views;
  for (size_t i = 0; i < optimizer.slot_names().size(); ++i) {
    slots.push_back(engine.allocate());
    views.push_back(slots.back().get());
  }
  start_slots(optimizer, engine.parameters(), views);
  return slots;
}

void Engine::begin_training(const Batch&, const Optimizer&, const UpdateArguments&,
                            std::span<Memory* const>) {
  throw std::logic_error("this engine does not train ahead");
}

LossSums Engine::end_training() {
  throw std::logic_error("this engine does not train ahead");
}

}  // namespace muster::compute
