#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/sources/dataset.h"
#include "trainer/data/stages/stage.h"

namespace muster::data {

// The stages of a source's samples, one after the other. The result depends only on (seed, epoch,
// position) and the sample.
class Augmentation {
 public:
  Augmentation() = default;  // no stages
  // Precondition: samples of the data set's shape fit all stages (spec::mismatch_of).
  Augmentation(std::vector<spec::StageKind> stages, uint64_t seed);

  // Makes sample `index` for its use at `position` in the order of `epoch`, and writes it to
  // `features`, which must have room for dataset.sample_bytes(). Any thread may call this, with its
  // own workspace. Throws Invalid for a damaged sample.
  void apply(const Dataset& dataset, uint64_t index, uint64_t epoch, uint64_t position,
             std::byte* features, Sample& workspace) const;

 private:
  std::vector<spec::StageKind> stages_;
  uint64_t seed_ = 0;
};

}  // namespace muster::data
