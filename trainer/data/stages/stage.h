#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/data/random.h"
#include "trainer/spec/augmentation.h"

namespace muster::data {

// Stages change a sample each time it is used. A kind of stage is a struct of spec::StageKind and
// an `apply` in a file of its own. A stage must leave the shape and the size of the elements as
// they are, because the batch has room for that many bytes, and it may draw 65536 numbers at most
// for one sample together with the other stages.

// An image between two stages. Its memory is kept from one image to the next.
struct Sample {
  std::vector<int64_t> shape;  // height, width and, where there are three axes, channels
  size_t element_bytes = 1;
  std::vector<std::byte> features;  // the elements, in C order
  std::vector<std::byte> scratch;   // for a stage that cannot work in place

  size_t height() const { return static_cast<size_t>(shape[0]); }
  size_t width() const { return static_cast<size_t>(shape[1]); }
  size_t pixel_bytes() const {
    return element_bytes * (shape.size() > 2 ? static_cast<size_t>(shape[2]) : 1);
  }
};

// The random numbers for one use of one sample. They do not depend on who draws them, or when.
class Draws {
 public:
  // The draws for the `position`-th sample of an epoch's order.
  Draws(uint64_t seed, uint64_t epoch, uint64_t position)
      : random_(seed, Stream::augmentation, epoch), counter_(position << 16) {}

  uint64_t below(uint64_t bound) { return random_.below(counter_++, bound); }  // in [0, bound)
  double uniform() { return random_.uniform(counter_++); }                     // in (0, 1]

 private:
  CounterRandom random_;
  uint64_t counter_;
};

void apply(const spec::Shift& shift, Sample& sample, Draws& draws);
void apply(const spec::Flip& flip, Sample& sample, Draws& draws);

}  // namespace muster::data
