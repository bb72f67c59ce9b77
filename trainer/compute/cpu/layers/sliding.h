#pragma once

#include "trainer/compute/cpu/program/context.h"
#include "trainer/compute/sliding.h"

namespace muster::compute::cpu {

// A stretch of the rows of the output of one sample.
struct Lines {
  int64_t sample, begin, end;
};

// Calls function(Lines) for a thread's share of the output's rows of all samples.
template <typename Function>
void for_lines(const Sliding& s, int64_t samples, TeamThread thread, Function function) {
  int64_t at = thread.begin(samples * s.out_height);
  const int64_t end = thread.end(samples * s.out_height);
  while (at < end) {
    const int64_t sample = at / s.out_height, first = at - sample * s.out_height;
    const int64_t left = s.out_height - first;
    const int64_t taken = left < end - at ? left : end - at;
    function(Lines{sample, first, first + taken});
    at += taken;
  }
}

// Sets a thread's share of the samples of a gradient to zero, for the operation that is the first
// to add to it.
void clear_samples(const Context& context, const ValueBlocks& value, const Step& step,
                   TeamThread thread);

// Each thread's gradient of a kernel and its bias, [rows, columns], of which the last row is the
// bias's; and their way into the layout.
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
