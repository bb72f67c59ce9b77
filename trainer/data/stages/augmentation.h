#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/data/stages/stage.h"

namespace muster::data {

// The stages of a source's samples, one after the other. The result depends only on (seed, epoch,
// position) and the sample.
class Augmentation {
 public:
  Augmentation() = default;  // no stages
  // Precondition: samples of the data set's shape fit all stages (spec::mismatch_of).
  Augmentation(std::vector<spec::StageKind> stages, uint64_t seed);

  // Whether samples stay as they are.
  bool empty() const { return stages_.empty(); }
  // Applies the stages to a sample for its use at `position` in the order of `epoch`, and writes
  // its features to `out`. Any thread may call this with its own sample. Throws Invalid for a
  // damaged image.
  void apply(Sample& sample, uint64_t epoch, uint64_t position, std::byte* out) const;

 private:
  std::vector<spec::StageKind> stages_;
  uint64_t seed_ = 0;
};

}  // namespace muster::data
