#pragma once

#include <string>
#include <vector>

#include "trainer/data/files/storage.h"
#include "trainer/data/sources/dataset.h"

namespace muster::data {

// The origin of consecutive samples, for messages.
struct Origin {
  uint64_t begin = 0;  // first sample in the data set
  std::string name;    // name of the file with the labels, or the source's kind
  uint64_t first = 0;  // number of that sample in the file
};

// The samples that a source reads or generates. `features` holds count * product(shape) elements;
// `labels`, `weights` and `groups` have count entries or none; `targets` has count * label_count
// entries or none.
struct Samples {
  std::vector<Origin> origins;  // in order; the first begins at sample 0
  uint64_t count = 0;
  std::vector<int64_t> shape;  // shape of one sample
  compute::ElementType type = compute::ElementType::float32;
  Storage features;
  float scale = 1.0f;
  std::vector<int32_t> labels;
  std::vector<float> targets;
  std::vector<float> weights;
  std::vector<int32_t> groups;  // of an evaluation that ranks
  int64_t rank_at = 0;          // of each group; 0 without groups
  int64_t label_count = 0;
  std::vector<std::string> classes;  // names of the classes, in order; empty: no names
  Json table;  // of a table: how rows become samples (data::Preparation); else null
};

// Samples whose values are stored, in memory or in a temporary file.
class StoredDataset : public Dataset {
 public:
  explicit StoredDataset(Samples samples);

  int32_t label(uint64_t sample) const override { return samples_.labels[sample]; }
  std::string describe(uint64_t sample) const override;
  void will_need(uint64_t sample) const override;
  void fill(const Use& use, const Augmentation& augmentation, Sample& workspace,
            Row& row) const override;

 private:
  const Samples samples_;
  const uint64_t sample_bytes_;
};

}  // namespace muster::data
