#include "trainer/images/flip.h"

#include "trainer/data/stages/stage.h"

namespace muster::data {

void apply(const spec::Flip& flip, Sample& sample, Draws& draws) {
  if (draws.uniform() > flip.probability) return;
  images::flip(sample.boxes);
  sample.mirror();
}

}  // namespace muster::data
