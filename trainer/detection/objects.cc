#include "trainer/detection/objects.h"

#include <algorithm>

namespace muster::detection {
namespace {

constexpr size_t kLabel = ObjectList::kLabel, kWeight = ObjectList::kWeight,
                 kCrowd = ObjectList::kCrowd, kArea = ObjectList::kArea;

size_t places(size_t floats) {
  return (floats - ObjectList::kHeader) / ObjectList::kFloats;
}

}  // namespace

ObjectList::ObjectList(std::span<const float> target) : target_(target) {
  const size_t most = places(target.size());
  while (size_ < most && target_[floats(size_) + kLabel] >= 0) ++size_;
}

Object ObjectList::at(size_t index) const {
  const float* from = target_.data() + floats(index);
  return {{from[0], from[1], from[2], from[3]},
          static_cast<int32_t>(from[kLabel]),
          from[kWeight],
          from[kCrowd] != 0,
          from[kArea]};
}

void write_objects(float height, float width, std::span<const Object> objects,
                   std::span<float> target) {
  std::ranges::fill(target, 0.0f);
  target[0] = height;
  target[1] = width;
  const size_t most = places(target.size()), count = std::min(most, objects.size());
  for (size_t i = 0; i < count; ++i) {
    const Object& object = objects[i];
    const auto to = target.subspan(ObjectList::floats(i), ObjectList::kFloats);
    put_box(to, 0, object.box);
    to[kLabel] = static_cast<float>(object.label);
    to[kWeight] = object.weight;
    to[kCrowd] = object.crowd ? 1.0f : 0.0f;
    to[kArea] = object.area;
  }
  if (count < most) target[ObjectList::floats(count) + kLabel] = -1;
}

}  // namespace muster::detection
