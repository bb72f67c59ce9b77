#pragma once

#include <cstdint>

#include "trainer/data/order/random.h"
#include "trainer/data/stages/sample.h"
#include "trainer/images/random_numbers.h"
#include "trainer/spec/augmentation.h"

namespace muster::data {

// Stages change a sample each time it is used. A kind of stage is a struct of spec::StageKind, and
// a function `apply` in a separate file. A stage must not change the shape and the size of the
// elements, because the batch has room for that many bytes. All stages together may draw at most
// 65536 numbers for one sample.

// The random numbers for one use of one sample. They do not depend on the thread that draws them or
// on the time.
class Draws final : public images::RandomNumbers {
 public:
  // The draws for the `position`-th sample of an epoch's order.
  Draws(uint64_t seed, uint64_t epoch, uint64_t position)
      : random_(seed, Stream::augmentation, epoch), counter_(position << 16) {}

  uint64_t below(uint64_t bound) override { return random_.below(counter_++, bound); }
  double uniform() override { return random_.uniform(counter_++); }

 private:
  CounterRandom random_;
  uint64_t counter_;
};

void apply(const spec::Shift& shift, Sample& sample, Draws& draws);
void apply(const spec::Flip& flip, Sample& sample, Draws& draws);
void apply(const spec::RandomCrop& crop, Sample& sample, Draws& draws);
void apply(const spec::SsdRandomCrop& crop, Sample& sample, Draws& draws);
void apply(const spec::Colour& colour, Sample& sample, Draws& draws);

}  // namespace muster::data
