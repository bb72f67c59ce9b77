#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "trainer/data/sources/stored_dataset.h"
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
class CountedDataset : public data::StoredDataset {
 public:
  using StoredDataset::StoredDataset;
  void fill(const data::Use& use, const data::Augmentation& augmentation, data::Sample& workspace,
            data::Row& row) const override {
    ++read_;
    StoredDataset::fill(use, augmentation, workspace, row);
  }
  uint64_t read() const { return read_; }

 private:
  mutable std::atomic<uint64_t> read_ = 0;
};

}  // namespace muster::loop
