#pragma once

#include "trainer/compute/cpu/program/context.h"
#include "trainer/compute/sliding.h"

namespace muster::compute::cpu {

// A stretch of the rows of the output of one sample.
struct Lines {
  int64_t sample, begin, end;
};

// Calls function(Lines) for a thread's share of the output's rows of all samples. Each stretch
// begins with a row that is a multiple of `step`.
template <typename Function>
void for_lines(const Sliding& s, int64_t samples, TeamThread thread, Function function,
               int64_t step = 1) {
  const int64_t steps = (s.out_height + step - 1) / step;  // number of steps in a sample
  int64_t at = thread.begin(samples * steps);
  const int64_t end = thread.end(samples * steps);
  while (at < end) {
    const int64_t sample = at / steps, first = at - sample * steps;
    const int64_t left = steps - first;
    const int64_t taken = left < end - at ? left : end - at;
    const int64_t last = (first + taken) * step;
    function(Lines{sample, first * step, last < s.out_height ? last : s.out_height});
    at += taken;
  }
}

// Each thread's gradient of a kernel and its bias, [rows, columns] (the last row is the bias's),
// and the sum of these gradients into the layout.
class WeightGradient {
 public:
  // `bias`: -1 for none. `kernel`, `bias`: positions in the layout.
  WeightGradient(Context& context, int64_t rows, int64_t columns, int64_t kernel, int64_t bias);

  float* of(TeamThread thread) const { return context_.own(block_, floats(), thread); }
  float* bias_of(TeamThread thread) const { return of(thread) + rows_ * columns_; }
  void clear(TeamThread thread) const;
  // Adds the phase that sums the threads' parts, threads ascending, and updates the parameters.
  void add_sum(Program& program, const std::string& name) const;
  Block block() const { return block_; }

 private:
  int64_t floats() const { return (rows_ + 1) * columns_; }

  Context& context_;
  const int64_t rows_, columns_, kernel_, bias_;
  Block block_;
};

}  // namespace muster::compute::cpu
