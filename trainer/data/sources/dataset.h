#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "trainer/compute/loss.h"
#include "trainer/data/order/shards.h"
#include "trainer/data/sources/sample_format.h"
#include "trainer/data/stages/augmentation.h"

namespace muster::data {

// What getting a sample takes.
enum class Effort {
  none,     // the sample is in the process's memory
  waiting,  // it may be on a disk
  work,     // it is made for each use
};

// One use of a sample in training or evaluation.
struct Use {
  uint64_t sample = 0;
  uint64_t epoch = 0;
  uint64_t position = 0;    // position in the epoch's order
  Shards::Held shard = {};  // the sample's shard; without samples: no other sample may replace it
};

// A row of a batch.
struct Row {
  // The memory that a data set may fill. Without memory for the features, they are taken from where
  // they are stored.
  std::byte* features_memory = nullptr;
  float* target_memory = nullptr;

  const void* features = nullptr;
  int32_t label = 0;              // if samples have classes
  const float* target = nullptr;  // if samples have targets or objects
  float weight = 1;
  int32_t group = 0;  // if samples have groups
};

// Samples, read-only after construction, so any thread may read.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  uint64_t size() const { return traits.size; }
  const SampleFormat& format() const { return traits.format; }
  // Returns the kind of labels. Images without labels have the kind floats, with targets of 0
  // floats.
  compute::LabelKind label_kind() const { return traits.label_kind; }
  // Returns the number of classes for data with classes (IDX: the largest label of the whole file +
  // 1, so that a part of a file has the same count), and the number of floats of a target for other
  // data.
  int64_t label_count() const { return traits.label_count; }
  // Returns the number of classes that objects may have; 0 if it is not known, or for other labels.
  int64_t object_classes() const { return traits.object_classes; }
  bool has_weights() const { return traits.has_weights; }
  // Returns how many samples of each group an evaluation's ranking counts; 0: there are no groups.
  int64_t rank_at() const { return traits.rank_at; }
  // Returns what getting a sample takes, if no stage changes it.
  Effort effort() const { return traits.effort; }
  // Returns the features of all samples, one after the other; empty if samples are made.
  std::span<const std::byte> stored() const { return traits.stored; }

  // If samples have objects, throws Invalid if no sample has an object to learn.
  virtual void require_objects() const {}
  // Returns the class of a sample; precondition: samples have classes. Throws Invalid for a damaged
  // sample.
  virtual int32_t label(uint64_t sample) const = 0;
  // Returns the sample's name for messages, with its number in the file: "sample 12 of
  // train-labels.gz".
  virtual std::string describe(uint64_t sample) const = 0;
  // Announces that the sample will soon be used. If it may be on a disk, it is fetched meanwhile.
  virtual void will_need(uint64_t) const {}
  // Fills a row with the sample, in `workspace` if it has to be made or changed. Precondition: the
  // row has memory if the effort is work or there are stages. Throws Invalid for a damaged sample,
  // unless another sample of the shard may replace it.
  virtual void fill(const Use& use, const Augmentation& augmentation, Sample& workspace,
                    Row& row) const = 0;

 protected:
  struct Traits {
    uint64_t size = 0;
    SampleFormat format = {};
    compute::LabelKind label_kind = compute::LabelKind::classes;
    int64_t label_count = 0;
    int64_t object_classes = 0;
    bool has_weights = false;
    int64_t rank_at = 0;
    Effort effort = Effort::work;
    std::span<const std::byte> stored = {};
  };
  explicit Dataset(Traits common) : traits(std::move(common)) {}

  Traits traits;
};

// Throws Invalid, "label 12 of sample 7 of FILE is out of range for 10 classes (0 to 9)", where a
// label does not fit the model. Does nothing for data without class labels.
void require_labels_below(const Dataset& dataset, int64_t classes);

// Throws Invalid for a target with a number outside [least, most]. Precondition: samples have
// targets, which are stored.
void require_targets_within(const Dataset& dataset, float least, float most);

}  // namespace muster::data
