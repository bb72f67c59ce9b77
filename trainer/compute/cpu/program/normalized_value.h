#pragma once

#include "trainer/compute/cpu/program/normalization_parameters.h"

namespace muster::compute::cpu {

// A value that is never written: of the output of a convolution, its batch normalization and a
// rectifier only the convolution's raw output z is kept, and
//   y = min(max(z * scale + shift, low), high)
// is computed, a tile at a time, by the convolutions that read it, forward and backward. So z is
// written once and read twice, where three layers would write and read three values and their
// gradients. The operation that writes z adds up its statistics while it is in the cache; the last
// operation that writes the gradient of y adds up what the gradients of gamma and beta need.
// Tiles are [places, channels] without gaps. z and the gradient of y are kept as bfloat16, if that
// is the engine's precision.
class NormalizedValue {
 public:
  // `width`: floats of a sample. The value has a gradient if `needs_gradient`.
  NormalizedValue(Context& context, const Fusion& fusion, int64_t width, int writers);

  // Used by the operation that writes z, forward: whether it must add up statistics; before the
  // first tile; for each tile; and the phase after all tiles, which computes scale and shift.
  bool collects(const Step& step) const { return step.training && parameters_.trainable(); }
  void clear_statistics(TeamThread thread) const;
  // add_statistics() is called in place of end_write(): it rounds `unrounded`, which begin_write()
  // returned, to z and adds up the statistics.
  void add_statistics(TeamThread thread, Numbers z, const float* unrounded, int64_t places) const;
  Access statistics_access() const { return writes(statistics_, Share::own); }
  void add_forward(Program& program);

  // Used by it backward: the phase that computes the gradients of gamma and beta, which must come
  // before the first tile; and each tile's gradient of z from that of y.
  void add_backward(Program& program);
  void gradient(Numbers z, Numbers dy, float* dz, int64_t places) const;
  // gradient_pairs(), and value_pairs() below, write the same as pairs of bfloat16, to one or both
  // of NormalizedTile::rows and row_pairs.
  void gradient_pairs(Numbers z, Numbers dy, float* rows, float* row_pairs, int64_t places) const;
  std::vector<Access> gradient_accesses() const;

  // Used by operations that read y.
  void values(Numbers z, float* y, int64_t places) const;
  void value_pairs(Numbers z, float* rows, float* row_pairs, int64_t places) const;
  std::vector<Access> value_accesses() const;

  // Used by operations that write the gradient of y, in the order in which they write it. Returns
  // whether the caller is the last one. It must then call clear_sums() and, for all places of its
  // thread's samples, add_sums() in place of end_write(): that rounds `unrounded`, which
  // begin_write() returned, to dy and adds up the sums.
  bool claim_sums();
  void clear_sums(TeamThread thread) const;
  void add_sums(TeamThread thread, Numbers z, Numbers dy, const float* unrounded,
                int64_t places) const;
  std::vector<Access> sums_accesses() const;

 private:
  NormalizedTile tile(Numbers z, int64_t places) const;
  NormalizedTile gradient_tile(Numbers z, Numbers dy, int64_t places) const;
  void run_forward(const Step& step, TeamThread thread) const;
  void join_statistics(const Step& step, int64_t begin, int64_t end) const;
  void run_backward(const Step& step, TeamThread thread) const;

  const std::string name_;
  Context& context_;
  const NormalizationParameters parameters_;
  const int64_t channels_, places_;  // of a sample
  float low_, high_;
  int writers_;
  Block statistics_;  // each thread's mean, spread and number of places
  Block sums_;        // each thread's, as in NormalizedTile
  Block mean_, inverse_, scale_, shift_, slope_, offset_;
};

}  // namespace muster::compute::cpu
