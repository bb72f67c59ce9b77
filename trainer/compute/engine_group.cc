#include "trainer/compute/engine_group.h"

#include "common/error.h"
#include "trainer/compute/cuda/engine_group.h"

namespace muster::compute {

std::unique_ptr<EngineGroup> EngineGroup::create(std::span<Engine* const> engines,
                                                 const Optimizer& optimizer) {
  std::vector<cuda::CudaEngine*> on_gpus;
  for (Engine* engine : engines) {
    on_gpus.push_back(dynamic_cast<cuda::CudaEngine*>(engine));
    if (on_gpus.back() == nullptr) return nullptr;
  }
  if (on_gpus.empty()) return nullptr;
  return std::make_unique<cuda::CudaEngineGroup>(on_gpus, optimizer);
}

std::vector<std::string> EngineGroup::link_names(std::span<Engine* const> engines,
                                                 std::string& why) {
  std::vector<std::string> names;
  for (const Engine* engine : engines) {
    cuda::Gpu* gpu = engine->gpu_or_null();
    if (gpu == nullptr) return {};
    try {
      names.push_back(gpu->link_name());
    } catch (const Unavailable& error) {
      why = error.what();
      return {};
    }
  }
  return names;
}

}  // namespace muster::compute
