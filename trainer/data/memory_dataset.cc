#include "trainer/data/memory_dataset.h"

#include <fmt/format.h>

namespace muster::data {

MemoryDataset::MemoryDataset(Samples samples) : samples_(std::move(samples)) {
  for (const int64_t size : samples_.shape) elements_ *= static_cast<uint64_t>(size);
}

compute::ElementType MemoryDataset::element_type() const {
  return samples_.bytes.empty() ? compute::ElementType::float32 : compute::ElementType::uint8;
}

const void* MemoryDataset::features(uint64_t index) const {
  if (samples_.bytes.empty()) return samples_.floats.data() + index * elements_;
  return samples_.bytes.data() + index * elements_;
}

const float* MemoryDataset::target(uint64_t index) const {
  if (samples_.targets.empty()) return nullptr;
  return samples_.targets.data() + index * static_cast<uint64_t>(samples_.label_count);
}

std::string MemoryDataset::describe(uint64_t index) const {
  return fmt::format("sample {} of {}", samples_.first + index, samples_.name);
}

}  // namespace muster::data
