#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/spec/training_spec.h"

namespace muster::data {

// Samples in memory, read-only after construction, so any thread may read.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual uint64_t size() const = 0;
  virtual const std::vector<int64_t>& sample_shape() const = 0;
  // Classes for labelled data, floats per target for regression.
  virtual int64_t label_count() const = 0;
  virtual bool has_labels() const = 0;  // class labels, not float targets
  virtual compute::ElementType element_type() const = 0;
  virtual float scale() const = 0;
  virtual float offset() const = 0;
  virtual const void* features(uint64_t index) const = 0;
  virtual int32_t label(uint64_t index) const = 0;
  virtual const float* target(uint64_t index) const = 0;
};

// Opens and reads a source whole (IDX plain or gzip; synthetic), after skip and take. Throws Invalid
// naming file and byte where something is missing, truncated, mislabelled or out of range.
std::unique_ptr<Dataset> open_dataset(const spec::DataSource& source);

// One epoch's order: a permutation of [0, size) that is a function of (seed, epoch) only, or the
// identity without shuffling.
class EpochOrder {
 public:
  EpochOrder(uint64_t size, bool shuffle, uint64_t seed);
  // Sample at `position` of `epoch`. Keeps the last epoch's permutation.
  uint64_t at(uint64_t epoch, uint64_t position);

 private:
  void build(uint64_t epoch);
  bool shuffle_;
  uint64_t seed_;
  uint64_t epoch_ = ~uint64_t{0};
  std::vector<uint32_t> order_;
};

// Fills a compute::Batch with samples of a data set; owns the pointer arrays, allocated once.
class Batcher {
 public:
  Batcher(const Dataset& dataset, EpochOrder& order, int64_t max_rows);
  // Positions [begin, begin + rows) of `epoch`, clipped to the epoch's end.
  const compute::Batch& fill(uint64_t epoch, uint64_t begin, int64_t rows);

 private:
  const Dataset& dataset_;
  EpochOrder& order_;
  std::vector<const void*> features_;
  std::vector<int32_t> labels_;
  std::vector<const float*> targets_;
  std::vector<uint64_t> positions_;
  compute::Batch batch_;
};

}  // namespace muster::data
