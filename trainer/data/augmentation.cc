#include "trainer/data/augmentation.h"

#include <cstring>
#include <utility>
#include <variant>

namespace muster::data {

Augmentation::Augmentation(std::vector<spec::StageKind> stages, uint64_t seed)
    : stages_(std::move(stages)), seed_(seed) {}

void Augmentation::apply(const Dataset& dataset, uint64_t index, uint64_t epoch, uint64_t position,
                         std::byte* features, Sample& workspace) const {
  const auto* from = static_cast<const std::byte*>(dataset.features(index));
  workspace.shape = dataset.sample_shape();
  workspace.element_bytes = compute::bytes_of(dataset.element_type());
  workspace.features.assign(from, from + dataset.sample_bytes());
  Draws draws(seed_, epoch, position);
  for (const spec::StageKind& stage : stages_)
    std::visit([&](const auto& kind) { data::apply(kind, workspace, draws); }, stage);
  std::memcpy(features, workspace.features.data(), workspace.features.size());
}

}  // namespace muster::data
