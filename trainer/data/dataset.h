#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/spec/training_spec.h"

namespace muster::data {

// Samples in memory, read-only after construction, so any thread may read.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual uint64_t size() const = 0;
  // {28, 28} for MNIST: as the file says, not flattened.
  virtual const std::vector<int64_t>& sample_shape() const = 0;
  // Classes for labelled data (IDX: the largest label of the whole file + 1, so that a part of a
  // file has the count of all), floats per target for regression, 0 for images without labels.
  virtual int64_t label_count() const = 0;
  virtual bool has_labels() const = 0;  // class labels, not float targets
  virtual compute::ElementType element_type() const = 0;
  virtual float scale() const = 0;
  virtual float offset() const = 0;
  virtual const void* features(uint64_t index) const = 0;
  virtual int32_t label(uint64_t index) const = 0;
  virtual const float* target(uint64_t index) const = 0;  // nullptr where there are none
  // Sample `index` is soon wanted: where it may lie on a disk, it is fetched meanwhile.
  virtual void will_need(uint64_t index) const = 0;
  // For messages: "sample 12 of train-labels.gz", counted as the file counts.
  virtual std::string describe(uint64_t index) const = 0;
};

// Throws Invalid, "label 12 of sample 7 of FILE is out of range for 10 classes (0 to 9)", where a
// label does not fit the model. Does nothing for data without class labels.
void require_labels_below(const Dataset& dataset, int64_t classes);

// Reads a source whole, after skip, take and split: IDX plain or gzip, told apart by their first
// bytes, kept as the unsigned bytes they are; synthetic, generated once and kept as float32. So the
// data are decoded once a process: with `cache` in its memory, without in an unlinked temporary
// file that is mapped, whose pages the system may drop when memory is short. IDX labels may be
// absent (an empty path), for prediction. Throws Invalid naming file and byte where something is
// missing, truncated, mislabelled or out of range.
std::unique_ptr<Dataset> open_dataset(const spec::DataSource& source);

// One epoch's order: a permutation of [0, size) that is a function of (seed, epoch) only, the same
// on every platform, or the identity without shuffling. Not thread-safe. 4 bytes a sample.
class EpochOrder {
 public:
  // Throws Invalid for 2^32 samples or more.
  EpochOrder(uint64_t size, bool shuffle, uint64_t seed);
  // Sample at `position` < size() of `epoch`. Keeps the last epoch's permutation.
  uint64_t at(uint64_t epoch, uint64_t position);
  uint64_t size() const { return size_; }

 private:
  void build(uint64_t epoch);
  uint64_t size_;
  bool shuffle_;
  uint64_t seed_;
  uint64_t epoch_ = ~uint64_t{0};
  std::vector<uint32_t> order_;
};

// Fills a compute::Batch with samples of a data set; owns the pointer arrays, allocated once.
class Batcher {
 public:
  Batcher(const Dataset& dataset, EpochOrder& order, int64_t max_rows);
  // Positions [begin, begin + rows) of `epoch`, clipped to the epoch's end and to max_rows. The
  // result is valid until the next call.
  const compute::Batch& fill(uint64_t epoch, uint64_t begin, int64_t rows);
  // The samples of a later batch are soon wanted; clipped as in fill(), whose result it leaves.
  void prefetch(uint64_t epoch, uint64_t begin, int64_t rows);

 private:
  const Dataset& dataset_;
  EpochOrder& order_;
  uint64_t max_rows_;
  std::vector<const void*> features_;
  std::vector<int32_t> labels_;
  std::vector<const float*> targets_;
  std::vector<uint64_t> positions_;
  compute::Batch batch_;
};

}  // namespace muster::data
