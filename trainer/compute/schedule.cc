#include "trainer/compute/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace muster::compute {
namespace {

double shaped(double rate, const Constant&, uint64_t) {
  return rate;
}

double shaped(double rate, const Piecewise& shape, uint64_t step) {
  if (shape.values.empty()) return rate;
  size_t i = 0;
  while (i < shape.boundaries.size() && step > shape.boundaries[i]) ++i;
  return shape.values[std::min(i, shape.values.size() - 1)];
}

double shaped(double rate, const Exponential& shape, uint64_t step) {
  double exponent = double(step) / double(std::max<uint64_t>(shape.decay_steps, 1));
  if (shape.staircase) exponent = std::floor(exponent);
  return rate * std::pow(shape.rate, exponent);
}

double shaped(double rate, const Cosine& shape, uint64_t step) {
  const double n = double(std::max<uint64_t>(shape.decay_steps, 1));
  const double cosine = std::cos(std::numbers::pi * std::min(double(step), n) / n);
  return rate * ((1.0 - shape.alpha) * (1.0 + cosine) / 2.0 + shape.alpha);
}

}  // namespace

double Schedule::at(uint64_t step) const {
  if (step < warmup_steps) return learning_rate * double(step + 1) / double(warmup_steps);
  return std::visit([&](const auto& s) { return shaped(learning_rate, s, step - warmup_steps); },
                    shape);
}

}  // namespace muster::compute
