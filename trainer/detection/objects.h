#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/detection/box.h"

namespace muster::detection {

// An object that an image shows.
struct Object {
  Box box;
  int32_t label = 0;   // from 0; the background has none
  float weight = 1;    // weight of its losses in training, 0 to 1
  bool crowd = false;  // the box surrounds many objects; no anchor is trained to find it
  float area = 0;      // in pixels of the original image; COCO's metrics group objects by area

  friend bool operator==(const Object&, const Object&) = default;
};

// The objects of an image as floats. Data sets, batches and backends pass objects on in this form.
// All images have room for the same number of objects. First come the height and the width of the
// original image in pixels, then for each object ymin, xmin, ymax, xmax (relative to the image),
// label, weight, crowd (0 or 1) and area. A label of -1 says that no object follows.
class ObjectList {
 public:
  static constexpr size_t kHeader = 2;
  static constexpr size_t kFloats = 8;
  static constexpr size_t kMost = 100;  // room in a sample of a data set
  // The indices, in an object's floats, of the values after its box.
  static constexpr size_t kLabel = 4, kWeight = 5, kCrowd = 6, kArea = 7;

  // Returns the number of floats for at most `most` objects.
  static constexpr size_t floats(size_t most) { return kHeader + most * kFloats; }

  // `target` has floats(n) floats, for any n.
  explicit ObjectList(std::span<const float> target);

  float height() const { return target_[0]; }
  float width() const { return target_[1]; }
  size_t size() const { return size_; }
  Object at(size_t index) const;

 private:
  std::span<const float> target_;
  size_t size_ = 0;
};

// Writes the objects, as many as there is room for. `target` has ObjectList::floats(n) floats, for
// any n.
void write_objects(float height, float width, std::span<const Object> objects,
                   std::span<float> target);

}  // namespace muster::detection
