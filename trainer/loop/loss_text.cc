#include "trainer/loop/loss_text.h"

#include <fmt/format.h>

#include <cmath>

namespace muster::loop {

std::string loss_text(double loss) {
  return std::isnan(loss) ? "nan" : fmt::format("{:.4f}", loss);
}

}  // namespace muster::loop
