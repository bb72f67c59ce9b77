#include "trainer/data/stages/augmentation.h"

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

void Augmentation::apply(Sample& sample, uint64_t epoch, uint64_t position, std::byte* out) const {
  Draws draws(seed_, epoch, position);
  for (const spec::StageKind& stage : stages_) {
    if (!takes_encoded(stage)) sample.make_pixels();
    std::visit([&](const auto& kind) { data::apply(kind, sample, draws); }, stage);
  }
  sample.make_pixels();
  sample.write(out);
}

}  // namespace muster::data
