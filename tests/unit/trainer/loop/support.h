#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "trainer/data/sources/memory_dataset.h"
#include "trainer/group/membership.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// A folder of the test's own, empty; it goes when the program ends.
std::filesystem::path fresh_folder(const std::string& name);

// A small classification on synthetic blobs, with lines of YAML added at the end.
std::filesystem::path write_training(const std::filesystem::path& folder, const std::string& more);

// A process by itself on that training, storing below `folder`/job.
group::Membership alone(const std::filesystem::path& folder, const std::filesystem::path& training);

// Samples that say how many were read so far.
class CountedDataset : public data::MemoryDataset {
 public:
  using MemoryDataset::MemoryDataset;
  const void* features(uint64_t index) const override {
    ++read_;
    return MemoryDataset::features(index);
  }
  uint64_t read() const { return read_; }

 private:
  mutable std::atomic<uint64_t> read_ = 0;
};

}  // namespace muster::loop
