#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/compute/loss.h"

namespace muster::data {

struct Sample;

// Samples, read-only after construction, so any thread may read. They are in memory ready for use,
// or are made for each use (made_on_use()).
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual uint64_t size() const = 0;
  // Returns {28, 28} for MNIST: the shape in the file, not flattened.
  virtual const std::vector<int64_t>& sample_shape() const = 0;
  // Returns the kind of labels. Images without labels have the kind floats, with targets of 0
  // floats.
  virtual compute::LabelKind label_kind() const = 0;
  // Returns the number of classes for data with classes (IDX: the largest label of the whole file +
  // 1, so that a part of a file has the same count), and the number of floats of a target for other
  // data.
  virtual int64_t label_count() const = 0;
  // Returns the number of classes that objects may have; 0 if it is not known, or for other labels.
  virtual int64_t object_classes() const { return 0; }
  // If samples have objects, throws Invalid if no sample has an object to learn.
  virtual void require_objects() const {}
  // Returns the names of the classes, in order and as UTF-8; empty if they have no names.
  virtual std::vector<std::string> class_names() const { return {}; }
  virtual compute::ElementType element_type() const = 0;
  virtual float scale() const = 0;
  virtual float offset() const = 0;
  virtual uint64_t sample_bytes() const = 0;  // bytes of one sample's features
  // Whether the samples are in the process's memory, ready for use, one after the other. Otherwise
  // getting a sample may wait for a disk, or for the work of making the sample.
  virtual bool in_memory() const = 0;
  // Whether begin() must make a sample for each use; if so, features() is null.
  virtual bool made_on_use() const { return false; }
  virtual const void* features(uint64_t index) const = 0;
  // Begins a use of the sample: prepares it for the stages. The first stage accepts it in any form
  // of Sample. Throws Invalid for a damaged sample.
  virtual void begin(uint64_t index, Sample& sample) const = 0;
  // Reports that a use of the sample has thrown Invalid, with the message. Throws Invalid unless
  // another sample may replace this one.
  virtual void report_corrupt(uint64_t index, const std::string& why) const = 0;
  // Reports what is irregular about a sample that is used nevertheless.
  virtual void report_odd(uint64_t, const std::string&) const {}
  virtual int32_t label(uint64_t index) const = 0;
  // Returns null if there are no targets. Targets of objects come with the sample (Sample::boxes).
  virtual const float* target(uint64_t index) const = 0;
  // Announces that sample `index` will soon be read. If the sample may be on a disk, it is fetched
  // meanwhile.
  virtual void will_need(uint64_t index) const = 0;
  // Returns the sample's name for messages, with its number in the file: "sample 12 of
  // train-labels.gz".
  virtual std::string describe(uint64_t index) const = 0;
};

// Throws Invalid, "label 12 of sample 7 of FILE is out of range for 10 classes (0 to 9)", where a
// label does not fit the model. Does nothing for data without class labels.
void require_labels_below(const Dataset& dataset, int64_t classes);

}  // namespace muster::data
