#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::checkpoint {

// A job's checkpoints on shared storage. Publishing follows write, fsync, rename, fsync; a reader
// trusts only a manifest whose files have the sizes and checksums it names.
class Store {
 public:
  // `directory` is the job's "checkpoints" folder; begin() makes it if it is missing. `keep` counts
  // the newest checkpoints that pruning leaves, at least 1.
  Store(std::filesystem::path directory, int keep);

  // A fresh "ckpt-<step>.tmp-<unique>" for shards to write into. Removes leftovers of writers dead
  // for more than an hour. Throws WriteError.
  std::filesystem::path begin(uint64_t step);
  // Checks that every file of the manifest is there with its size; index, manifest, fsync, rename
  // to its final name, CheckpointState, pruning of the oldest beyond `keep` that nobody leases (the
  // final one, the one marked as the best and those that the newest's position.evaluations name are
  // kept; one that is known to be damaged is neither counted nor removed: a damaged manifest or
  // size, or found to be damaged by a search of this store). Returns the folder. Throws WriteError,
  // and Invalid where that step was published before in that generation or a file is not what the
  // manifest says. A WriteError of the fsync after the rename: it is published, though perhaps not
  // for long. What goes wrong after that is logged.
  std::filesystem::path publish(const std::filesystem::path& temporary, const Manifest& manifest);
  void discard(const std::filesystem::path& temporary) noexcept;
  bool published(uint64_t step, uint64_t generation) const;
  // Removes temporary folders begun longer ago than `age`.
  void remove_leftovers(std::chrono::seconds age) const noexcept;
  // Ends whatever has been begun: none of it will be published. By the owner of a new generation,
  // after which writers of earlier ones begin nothing any more. Throws Unavailable.
  void fence() const;

  struct Found {
    std::filesystem::path directory;
    Manifest manifest;
  };
  // Names of all published folders, newest first: highest generation, then step. Nothing is
  // verified.
  std::vector<FolderName> list() const;
  struct Damaged {
    std::filesystem::path directory;
    std::string reason;  // names the file
  };
  struct Search {
    std::optional<Found> newest;   // whole
    std::vector<Damaged> damaged;  // all that are newer
    // `newest`. Throws Invalid where there are only damaged ones, naming each, with its reason and
    // what can be done: who goes on without says nothing of what is lost.
    const std::optional<Found>& or_refuse() const;
  };
  // The newest whole checkpoint, every byte of it verified. Says nothing. Throws Unavailable where
  // something cannot be read: nobody knows then whether it is whole.
  Search search() const;
  // The same; one that is damaged is passed over with a warning, once, that names it and the
  // reason.
  std::optional<Found> newest() const;
  // The same, for training to go on from. Throws as or_refuse() does.
  std::optional<Found> to_resume() const;
  // The newest whole one of that step. Throws Unavailable as search() does.
  std::optional<Found> of_step(uint64_t step) const;
  // Throws Invalid, also where the manifest is of another step or generation than the folder's
  // name.
  static Manifest read_manifest(const std::filesystem::path& directory);
  // Checks sizes and checksums of every file. Throws Invalid naming the file.
  static void verify(const Found& found);

  // Keeps this one from being pruned until another is marked. Throws WriteError.
  void mark_best(const Found& found);

  // Keeps a checkpoint from being pruned while it lives: a file "lease-<reader>-<unique>" with an
  // expiry ten minutes ahead that is renewed; a lease of a dead reader lapses. Null where the
  // checkpoint is no longer there, pruned meanwhile: newest() finds another. Throws WriteError
  // where the folder cannot be written.
  class Lease;
  std::unique_ptr<Lease> lease(const Found& found, const std::string& reader) const;

  // Fills `values` (memory of `range` alone) with "<prefix><tensor>" for every tensor of the layout
  // in range, from whatever shards the checkpoint has; padding becomes zero. Throws Invalid naming
  // the tensor that is missing or has another shape; `values` is then as it was.
  static void load(const Found& found, const compute::ParameterLayout& layout, compute::Range range,
                   std::span<float> values, const std::string& prefix);

 private:
  Search search(const std::function<bool(const FolderName&)>& wanted) const;
  void tell(const std::vector<Damaged>& damaged) const;
  bool is_damaged(const std::filesystem::path& checkpoint) const;
  void write_state() const;
  void prune() const;

  std::filesystem::path directory_;
  int keep_;
  mutable std::mutex damaged_mutex_;
  mutable std::set<std::filesystem::path> damaged_;  // that a search has found
  mutable std::set<std::filesystem::path> told_;
};

class Store::Lease {
 public:
  // Writes the lease file, `path`.
  Lease(std::filesystem::path path, std::string reader);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  // Writes only when a good part of the term is over: may be called at every batch. Throws
  // WriteError.
  void renew();

  // True if any lease in a checkpoint's folder has not lapsed.
  static bool any_active(const std::filesystem::path& checkpoint);

 private:
  void write();

  std::filesystem::path path_;
  std::string reader_;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace muster::checkpoint
