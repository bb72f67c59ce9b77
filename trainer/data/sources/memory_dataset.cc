#include "trainer/data/sources/memory_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/error.h"
#include "trainer/data/stages/sample.h"

namespace muster::data {

MemoryDataset::MemoryDataset(Samples samples)
    : samples_(std::move(samples)), sample_bytes_(compute::bytes_of(samples_.type)) {
  for (const int64_t size : samples_.shape) sample_bytes_ *= static_cast<uint64_t>(size);
}

const void* MemoryDataset::features(uint64_t index) const {
  return samples_.features.bytes().data() + index * sample_bytes_;
}

void MemoryDataset::begin(uint64_t index, Sample& sample) const {
  const auto* from = static_cast<const std::byte*>(features(index));
  sample.shape = samples_.shape;
  sample.element_bytes = compute::bytes_of(samples_.type);
  sample.features.assign(from, from + sample_bytes_);
}

void MemoryDataset::report_corrupt(uint64_t, const std::string& why) const {
  throw Invalid(why);
}

const float* MemoryDataset::target(uint64_t index) const {
  if (samples_.targets.empty()) return nullptr;
  return samples_.targets.data() + index * static_cast<uint64_t>(samples_.label_count);
}

void MemoryDataset::will_need(uint64_t index) const {
  samples_.features.will_need(index * sample_bytes_, sample_bytes_);
}

std::string MemoryDataset::describe(uint64_t index) const {
  const auto after = std::ranges::upper_bound(samples_.origins, index, {}, &Origin::begin);
  const Origin& origin = *std::prev(after);
  return fmt::format("sample {} of {}", origin.first + index - origin.begin, origin.name);
}

}  // namespace muster::data
