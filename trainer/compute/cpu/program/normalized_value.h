#pragma once

#include "trainer/compute/cpu/program/normalization_parameters.h"

namespace muster::compute::cpu {

// A value that is never written: for a convolution, its batch normalization and a rectifier, only
// the convolution's raw output z is kept, and
//   y = min(max(z * scale + shift, low), high)
// is computed, a tile at a time, by the convolutions that read it, forward and backward. So z is
// written once and read twice, instead of three values and their gradients. The operation that
// writes z adds up the statistics while z is in the cache; the last operation that writes the
// gradient of y adds up the sums for the gradients of gamma and beta. Tiles are [places, channels]
// without gaps. z and the gradient of y are kept as bfloat16 if the engine's precision is bfloat16.
class NormalizedValue {
 public:
  // `width`: floats of a sample. The value has a gradient if `needs_gradient`.
  NormalizedValue(Context& context, const Fusion& fusion, int64_t width, int writers);

  // For the operation that writes z, in the forward pass: whether it must add up statistics; a call
  // before the first tile; a call for each tile; and the phase after all tiles, which computes
  // scale and shift.
  bool collects(const Step& step) const { return step.training && parameters_.trainable(); }
  void clear_statistics(TeamThread thread) const;
  // The operation calls add_statistics() instead of end_write(): it rounds `unrounded` (the result
  // of begin_write()) to z and adds up the statistics.
  void add_statistics(TeamThread thread, Numbers z, const float* unrounded, int64_t places) const;
  Access statistics_access() const { return writes(statistics_, Share::own); }
  void add_forward(Program& program);

  // For the operation that writes z, in the backward pass: the phase that computes the gradients of
  // gamma and beta, which must come before the first tile; and, for each tile, the gradient of z
  // from the gradient of y.
  void add_backward(Program& program);
  void gradient(Numbers z, Numbers dy, float* dz, int64_t places) const;
  // gradient_pairs(), and value_pairs() below, write the same results as pairs of bfloat16, to one
  // or both of NormalizedTile::rows and row_pairs.
  void gradient_pairs(Numbers z, Numbers dy, float* rows, float* row_pairs, int64_t places) const;
  std::vector<Access> gradient_accesses() const;

  // These two serve operations that read y.
  void values(Numbers z, float* y, int64_t places) const;
  void value_pairs(Numbers z, float* rows, float* row_pairs, int64_t places) const;
  std::vector<Access> value_accesses() const;

  // For operations that write the gradient of y, called in the order in which they write. Returns
  // whether the caller is the last writer. The last writer must call clear_sums() and, for all
  // places of its thread's samples, add_sums() instead of end_write(): it rounds `unrounded` (the
  // result of begin_write()) to dy and adds up the sums.
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
  const int64_t channels_, places_;  // sizes of a sample
  float low_, high_;
  int writers_;
  Block statistics_;  // each thread's mean, spread and number of places
  Block sums_;        // each thread's sums, as in NormalizedTile
  Block mean_, inverse_, scale_, shift_, slope_, offset_;
};

}  // namespace muster::compute::cpu
