#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "common/threads/mutex.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/checkpoint/store/checkpoint_lease.h"

namespace muster::checkpoint {

// A job's checkpoints on shared storage. Publishing is write, fsync, rename, fsync. A reader trusts
// only a manifest whose files have the sizes and checksums in it.
class Store {
 public:
  // `directory` is the job's "checkpoints" folder; begin() creates it if it is missing. `keep`, at
  // least 1, is the number of newest checkpoints that pruning keeps.
  Store(std::filesystem::path directory, int keep);

  // Makes a new folder "ckpt-<step>.tmp-<unique>" that shards write into. Removes leftovers of
  // writers that have been dead for more than an hour. Throws WriteError.
  std::filesystem::path begin(uint64_t step);
  // Checks that every file of the manifest exists with its size; writes index and manifest; does
  // fsync, renames the folder to its final name, writes CheckpointState, and prunes the oldest
  // checkpoints beyond `keep` that have no lease. Always kept are the final checkpoint, the
  // checkpoint marked as the best, and the checkpoints that position.evaluations of the newest one
  // names. A checkpoint that is known to be damaged (by its manifest or a size, or by a search of
  // this store) is neither counted nor removed. Returns the folder. Throws WriteError, and Invalid
  // if the same step of the same generation was published before or a file differs from the
  // manifest. If the fsync after the rename fails with a WriteError, the checkpoint is published,
  // though perhaps not durably. Later errors are only logged.
  std::filesystem::path publish(const std::filesystem::path& temporary, const Manifest& manifest);
  // From here on, publish() also keeps each checkpoint that has a file <step>.json in `evaluations`
  // which position.evaluations of the newest checkpoint does not know yet, because it may be the
  // best. This ends with a final checkpoint: then the best is decided. Call this before the first
  // publish().
  void leave_evaluated(std::filesystem::path evaluations);
  void discard(const std::filesystem::path& temporary) noexcept;
  bool published(uint64_t step, uint64_t generation) const;
  // Removes temporary folders begun longer ago than `age`.
  void remove_leftovers(std::chrono::seconds age) const noexcept;
  // Ends every checkpoint that has been begun, so that none of them will be published. The owner of
  // a new generation calls this; writers of earlier generations begin no checkpoint after it.
  // Throws Unavailable.
  void fence() const;

  struct Found {
    std::filesystem::path directory;
    Manifest manifest;
  };
  // Returns the names of all published folders, newest first: highest generation, then step.
  // Nothing is verified.
  std::vector<FolderName> list() const;
  struct Damaged {
    std::filesystem::path directory;
    std::string reason;  // names the file
  };
  struct Search {
    std::optional<Found> newest;   // whole
    std::vector<Damaged> damaged;  // all damaged checkpoints that are newer
    // Returns `newest`. If all checkpoints are damaged, throws Invalid, naming each with its reason
    // and what the user can do: a training that began anew would hide the loss.
    const std::optional<Found>& or_refuse() const;
  };
  // Finds the newest whole checkpoint, and verifies every byte of it. Logs nothing. Throws
  // Unavailable if something cannot be read, because it is then not known whether the checkpoint is
  // whole.
  Search search() const;
  // Returns the newest whole checkpoint of search(). Logs a warning, once, for each damaged
  // checkpoint that it skips, with its name and the reason.
  std::optional<Found> newest() const;
  // Returns newest() for training to resume from. Throws the errors of or_refuse().
  std::optional<Found> to_resume() const;
  // Returns the newest whole checkpoint of `step`. Throws Unavailable like search().
  std::optional<Found> of_step(uint64_t step) const;
  // Reads the manifest of a published checkpoint and nothing else. Throws Invalid, also if step or
  // generation differ from the folder's name.
  static Found read(const std::filesystem::path& directory);
  // Like read(), for a checkpoint that another host may have published just now.
  static Found read_of_another_host(const std::filesystem::path& directory);
  // Reads the manifest and checks sizes and checksums of all files. Throws Invalid naming the file.
  static Found read_whole(const std::filesystem::path& directory);

  // Protects this checkpoint from pruning until another checkpoint is marked. Throws WriteError.
  void mark_best(const Found& found);
  // Returns the step of the marked checkpoint, if it exists.
  std::optional<uint64_t> step_of_best() const;

  // Returns a lease on the checkpoint; null if the checkpoint was pruned meanwhile (newest() finds
  // another one). Throws WriteError if the folder cannot be written.
  std::unique_ptr<CheckpointLease> lease(const Found& found, const std::string& reader) const;

 private:
  Search search(const std::function<bool(const FolderName&)>& wanted) const;
  void tell(const std::vector<Damaged>& damaged) const;
  bool is_damaged(const std::filesystem::path& checkpoint) const;
  void write_state() const;
  void prune() const;
  void tell_kept(const std::filesystem::path& checkpoint, const std::error_code& error) const;
  bool may_be_best(const FolderName& name, const Manifest& newest) const;

  std::filesystem::path directory_;
  int keep_;
  std::filesystem::path evaluations_;  // empty: leave_evaluated() was not called
  mutable Mutex damaged_mutex_;
  // Damaged checkpoints that a search has found.
  mutable std::set<std::filesystem::path> damaged_ MUSTER_GUARDED_BY(damaged_mutex_);
  mutable std::set<std::filesystem::path> told_ MUSTER_GUARDED_BY(damaged_mutex_);
};

}  // namespace muster::checkpoint
