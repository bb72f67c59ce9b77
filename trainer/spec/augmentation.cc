#include "trainer/spec/augmentation.h"

#include <algorithm>

#include "common/error.h"
#include "trainer/compute/layers/layer.h"

namespace muster::spec {

namespace {

StageKind to_stage(const Json& stage) {
  if (const Json& shift = member(stage, "shift"); shift.is_object())
    return Shift{integer_or(shift, "pixels", Shift{}.pixels)};
  if (const Json& flip = member(stage, "flip"); flip.is_object())
    return Flip{number_or(flip, "probability", Flip{}.probability)};
  throw Invalid("augment: expected a stage that trainer/spec/augmentation.cc knows, found " +
                stage.dump());
}

std::optional<compute::Mismatch> mismatch(const Shift& shift, const std::vector<int64_t>& shape) {
  const int64_t smallest = std::min(shape[0], shape[1]);
  if (shift.pixels < smallest) return std::nullopt;
  return compute::Mismatch{-1, "shift.pixels",
                           "fewer pixels than " + std::to_string(smallest) +
                               ", for samples are of " + compute::to_string(shape),
                           std::to_string(shift.pixels)};
}
std::optional<compute::Mismatch> mismatch(const Flip&, const std::vector<int64_t>&) {
  return std::nullopt;
}

}  // namespace

std::optional<compute::Mismatch> mismatch_of(const StageKind& stage,
                                             const std::vector<int64_t>& shape) {
  if (shape.size() != 2 && shape.size() != 3)
    return compute::Mismatch{
        -1, "", "images: samples of height and width, or of height, width and channels",
        "samples of " + compute::to_string(shape)};
  return std::visit([&](const auto& kind) { return mismatch(kind, shape); }, stage);
}

std::vector<StageKind> to_stages(const Json& augment) {
  std::vector<StageKind> stages;
  for (const Json& stage : augment) stages.push_back(to_stage(stage));
  return stages;
}

}  // namespace muster::spec
