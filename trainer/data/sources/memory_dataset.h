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
// `labels` has count entries or none; `targets` has count * label_count entries or none.
struct Samples {
  std::vector<Origin> origins;  // in order; the first begins at sample 0
  uint64_t count = 0;
  std::vector<int64_t> shape;  // shape of one sample
  compute::ElementType type = compute::ElementType::float32;
  Storage features;
  float scale = 1.0f;
  std::vector<int32_t> labels;
  std::vector<float> targets;
  int64_t label_count = 0;
};

class MemoryDataset : public Dataset {
 public:
  explicit MemoryDataset(Samples samples);

  uint64_t size() const override { return samples_.count; }
  const std::vector<int64_t>& sample_shape() const override { return samples_.shape; }
  int64_t label_count() const override { return samples_.label_count; }
  compute::LabelKind label_kind() const override {
    return samples_.labels.empty() ? compute::LabelKind::floats : compute::LabelKind::classes;
  }
  compute::ElementType element_type() const override { return samples_.type; }
  float scale() const override { return samples_.scale; }
  float offset() const override { return 0.0f; }
  uint64_t sample_bytes() const override { return sample_bytes_; }
  bool in_memory() const override { return samples_.features.kind() == StorageKind::memory; }
  const void* features(uint64_t index) const override;
  void begin(uint64_t index, Sample& sample) const override;
  void report_corrupt(uint64_t index, const std::string& why) const override;
  int32_t label(uint64_t index) const override { return samples_.labels[index]; }
  const float* target(uint64_t index) const override;
  void will_need(uint64_t index) const override;
  std::string describe(uint64_t index) const override;

 private:
  Samples samples_;
  uint64_t sample_bytes_;
};

}  // namespace muster::data
