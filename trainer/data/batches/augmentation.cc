#include "trainer/data/batches/augmentation.h"

#include <cstring>
#include <utility>
#include <variant>

namespace muster::data {

namespace {

// Whether the stage works on an encoded image. A crop after such a stage takes its part from the
// file's pixels, not from a smaller image.
bool takes_encoded(const spec::StageKind& stage) {
  return std::holds_alternative<spec::Flip>(stage) ||
         std::holds_alternative<spec::RandomCrop>(stage) ||
         std::holds_alternative<spec::SsdRandomCrop>(stage);
}

}  // namespace

Augmentation::Augmentation(std::vector<spec::StageKind> stages, uint64_t seed)
    : stages_(std::move(stages)), seed_(seed) {}

void Augmentation::apply(const Dataset& dataset, uint64_t index, uint64_t epoch, uint64_t position,
                         std::byte* features, Sample& workspace) const {
  if (stages_.empty() && !dataset.made_on_use()) {
    std::memcpy(features, dataset.features(index), dataset.sample_bytes());
    return;
  }
  dataset.begin(index, workspace);
  Draws draws(seed_, epoch, position);
  for (const spec::StageKind& stage : stages_) {
    if (!takes_encoded(stage)) workspace.make_pixels();
    std::visit([&](const auto& kind) { data::apply(kind, workspace, draws); }, stage);
  }
  workspace.make_pixels();
  workspace.write(features);
}

}  // namespace muster::data
