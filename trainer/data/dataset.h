#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/data/shards.h"
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
  virtual uint64_t sample_bytes() const = 0;  // of one sample's features
  // Whether they lie in the process's memory; else looking at them may wait for a disk.
  virtual bool in_memory() const = 0;
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

struct TrainingData {
  std::unique_ptr<Dataset> samples;
  Shards shards;  // `samples` are those held
};

// The same of the samples that these replicas train on, as the source's `shard` says: by record all
// of them; by file those of the replicas' own files, of which there must be one for each of all
// replicas that has samples left by skip, take and split. Of others' files only headers and labels
// are read.
TrainingData open_training_data(const spec::DataSource& source, const Replicas& replicas,
                                const BatchRule& rule);

}  // namespace muster::data
