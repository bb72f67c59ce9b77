#include "trainer/spec/augmentation.h"

#include <algorithm>

#include "common/error.h"
#include "trainer/compute/layers/layer.h"

namespace muster::spec {

namespace {

Range to_range(const Json& value, const char* key, const Range& fallback) {
  const Json& range = member(value, key);
  if (!range.is_array() || range.size() != 2) return fallback;
  return {range[0].get<double>(), range[1].get<double>()};
}

StageKind to_stage(const Json& stage) {
  if (const Json& shift = member(stage, "shift"); shift.is_object())
    return Shift{integer_or(shift, "pixels", Shift{}.pixels)};
  if (const Json& crop = member(stage, "randomCrop"); crop.is_object())
    return RandomCrop{to_range(crop, "area", RandomCrop{}.area),
                      to_range(crop, "aspect", RandomCrop{}.aspect)};
  if (given(stage, "ssdRandomCrop")) return SsdRandomCrop{};
  if (const Json& colour = member(stage, "colour"); colour.is_object()) {
    constexpr Colour kDefault;
    return Colour{number_or(colour, "brightness", kDefault.brightness),
                  to_range(colour, "saturation", kDefault.saturation),
                  number_or(colour, "hue", kDefault.hue),
                  to_range(colour, "contrast", kDefault.contrast)};
  }
  if (const Json& flip = member(stage, "flip"); flip.is_object())
    return Flip{number_or(flip, "probability", Flip{}.probability)};
  throw Invalid("augment: expected a stage that trainer/spec/augmentation.cc knows, found " +
                stage.dump());
}

constexpr const char* kImageFiles = "images from files (imageFolder, imageCsv, tfRecord or coco)";

using compute::to_string;
using Shape = std::vector<int64_t>;

std::optional<compute::Mismatch> mismatch(const Shift& shift, const Shape& shape, bool) {
  const int64_t smallest = std::min(shape[0], shape[1]);
  if (shift.pixels < smallest) return std::nullopt;
  return compute::Mismatch{-1, "shift.pixels",
                           "fewer pixels than " + std::to_string(smallest) +
                               ", for samples are of " + compute::to_string(shape),
                           std::to_string(shift.pixels)};
}
std::optional<compute::Mismatch> mismatch(const Flip&, const Shape&, bool) {
  return std::nullopt;
}
std::optional<compute::Mismatch> mismatch(const RandomCrop&, const Shape& shape, bool decoded) {
  if (decoded) return std::nullopt;
  return compute::Mismatch{-1, "randomCrop", kImageFiles, "samples of " + to_string(shape)};
}
std::optional<compute::Mismatch> mismatch(const SsdRandomCrop&, const Shape& shape, bool decoded) {
  if (decoded) return std::nullopt;
  return compute::Mismatch{-1, "ssdRandomCrop", kImageFiles, "samples of " + to_string(shape)};
}
std::optional<compute::Mismatch> mismatch(const Colour&, const Shape& shape, bool decoded) {
  if (!decoded)
    return compute::Mismatch{-1, "colour", kImageFiles, "samples of " + to_string(shape)};
  if (shape[2] == 3) return std::nullopt;
  return compute::Mismatch{-1, "colour", "images of 3 channels", std::to_string(shape[2])};
}

}  // namespace

std::optional<compute::Mismatch> mismatch_of(const StageKind& stage,
                                             const std::vector<int64_t>& shape, bool decoded) {
  if (shape.size() != 2 && shape.size() != 3)
    return compute::Mismatch{
        -1, "", "images: samples of height and width, or of height, width and channels",
        "samples of " + compute::to_string(shape)};
  return std::visit([&](const auto& kind) { return mismatch(kind, shape, decoded); }, stage);
}

std::vector<StageKind> to_stages(const Json& augment) {
  std::vector<StageKind> stages;
  for (const Json& stage : augment) stages.push_back(to_stage(stage));
  return stages;
}

}  // namespace muster::spec
