#include "trainer/images/flip.h"

namespace muster::images {

void flip(std::vector<Box>& boxes) {
  for (Box& box : boxes) {
    const float xmin = box.xmin;
    box.xmin = 1 - box.xmax;
    box.xmax = 1 - xmin;
  }
}

}  // namespace muster::images
