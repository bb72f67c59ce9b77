#pragma once

#include <cstdint>
#include <variant>
#include <vector>

namespace muster::compute {

// The learning rate of the update that has `step` updates before it. The formulas are those of
// Keras's schedules.
struct Constant {};
struct Piecewise {  // values[i] while step <= boundaries[i], values.back() after
  std::vector<uint64_t> boundaries;
  std::vector<double> values;  // one more than boundaries; used instead of learning_rate
};
struct Exponential {  // lr * rate^(step / decay_steps); staircase: floor of the quotient
  uint64_t decay_steps = 1;
  double rate = 0.96;
  bool staircase = false;
};
struct Cosine {  // lr * ((1 - alpha) * (1 + cos(pi min(step, n) / n)) / 2 + alpha)
  uint64_t decay_steps = 1;
  double alpha = 0.0;
};
struct Schedule {
  double learning_rate = 0.001;
  std::variant<Constant, Piecewise, Exponential, Cosine> shape;
  // For the first steps the rate is linear, lr * (step + 1) / warmup_steps; the shape starts after
  // these steps. Keras uses the rate of the previous step, so its first update changes nothing.
  uint64_t warmup_steps = 0;
  double at(uint64_t step) const;
};

}  // namespace muster::compute
