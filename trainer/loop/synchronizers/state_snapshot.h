#pragma once

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/compute/aligned.h"
#include "trainer/loop/synchronizers/synchronizer.h"

namespace muster::loop {

// The snapshot of a synchronizer that holds the whole state. The state is written as one shard.
class StateSnapshot : public Snapshot {
 public:
  // `copies`: parameters, then each slot, of the whole layout; they must outlive the snapshot.
  StateSnapshot(const compute::ParameterLayout& layout, const std::vector<std::string>& slot_names,
                std::span<const compute::Floats> copies, checkpoint::Position position);

  const checkpoint::Position& position() const override { return position_; }
  void write(const std::filesystem::path& directory, checkpoint::Manifest& manifest,
             double bytes_per_second) override;
  void hurry() override;

 private:
  const checkpoint::State state_;
  const checkpoint::Position position_;
  checkpoint::SpeedLimit limit_;
  std::atomic<bool> hurried_{false};
};

}  // namespace muster::loop
