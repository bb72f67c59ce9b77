#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace muster::checkpoint {

// Protects a published checkpoint from pruning while it lives, by a file "lease-<reader>-<unique>"
// in its folder that expires ten minutes ahead and is renewed; the lease of a dead reader lapses.
class Lease {
 public:
  // Writes the lease file. `reader` is for people who look into the folder. Throws WriteError.
  Lease(const std::filesystem::path& checkpoint, std::string reader);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  // Writes only if a good part of the term is over, so it may be called at every batch. Throws
  // WriteError.
  void renew();

  // Returns true if any lease in a checkpoint's folder has not lapsed.
  static bool any_active(const std::filesystem::path& checkpoint);

 private:
  void write();

  std::filesystem::path path_;
  std::string reader_;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace muster::checkpoint
