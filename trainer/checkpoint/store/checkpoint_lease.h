#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace muster::checkpoint {

// Protects a published checkpoint from pruning while this object lives, by a file
// "lease-<reader>-<unique>" in the checkpoint's folder. The lease is valid for ten minutes and is
// renewed, so the lease of a dead reader expires.
class CheckpointLease {
 public:
  // Writes the lease file. `reader` is a name for people who look into the folder. Throws
  // WriteError.
  CheckpointLease(const std::filesystem::path& checkpoint, std::string reader);
  ~CheckpointLease();
  CheckpointLease(const CheckpointLease&) = delete;
  CheckpointLease& operator=(const CheckpointLease&) = delete;
  // Writes only if a good part of the ten minutes is over, so it may be called at every batch.
  // Throws WriteError.
  void renew();

  // Whether a checkpoint's folder has a lease that has not expired.
  static bool any_active(const std::filesystem::path& checkpoint);

 private:
  void write();

  std::filesystem::path path_;
  std::string reader_;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace muster::checkpoint
