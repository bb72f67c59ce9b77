#include "trainer/compute/engine_group.h"

#include "common/error.h"
#include "trainer/compute/cuda/engine_group.h"

namespace muster::compute {

std::unique_ptr<EngineGroup> EngineGroup::create(std::span<Engine* const> engines,
                                                 const Optimizer& optimizer, std::string& why) {
  std::vector<cuda::CudaEngine*> on_gpus;
  std::vector<cuda::Gpu*> gpus;
  for (Engine* engine : engines) {
    auto* cuda = dynamic_cast<cuda::CudaEngine*>(engine);
    if (cuda == nullptr) return nullptr;
    on_gpus.push_back(cuda);
    gpus.push_back(&cuda->gpu());
  }
  if (gpus.empty()) return nullptr;
  auto links = gpus[0]->link(gpus, why);
  if (links.empty()) return nullptr;
  try {
    return std::make_unique<cuda::CudaEngineGroup>(on_gpus, std::move(links), optimizer);
  } catch (const Unavailable& error) {
    why = error.what();
    return nullptr;
  }
}

}  // namespace muster::compute
