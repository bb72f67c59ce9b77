#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/files/manifest.h"
#include "trainer/compute/aligned.h"

namespace muster::simulation {

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The shared storage of a job, as far as the protocol knows it: generations/, checkpoints/ and the
// temporary folders that become checkpoints. The operations do what the functions of
// folder/generations.h and checkpoint/store/store.h do; each is one indivisible step.
class SimulatedStorage {
 public:
  struct File {
    uint64_t step = 0;
    compute::Floats parameters;
    std::vector<compute::Floats> slots;
  };
  struct Folder {
    checkpoint::Position position;
    uint64_t generation = 0;
    bool final = false;
    std::map<int, File> files;  // by shard
  };

  explicit SimulatedStorage(int shards) : shards_(shards) {}

  // The operations throw Unavailable if the next one is to fail.
  uint64_t open_generation(uint64_t above);
  uint64_t newest_generation() const { return generations_.empty() ? 0 : *generations_.rbegin(); }
  void require_newest(uint64_t generation);
  void fence();
  std::optional<Folder> newest();
  std::string begin();
  void write(const std::string& temporary, int shard, File file);
  // Throws Unavailable if the temporary folder is gone, Violation if a fence did not hold.
  void publish(const std::string& temporary, Folder manifest);
  void prune(int keep);
  // Returns the folder that has this name already; null if there is none.
  const Folder* find(uint64_t step, uint64_t generation);
  // Throws Unavailable if there is none.
  const Folder& checkpoint(const std::string& name);
  static std::string name_of(const Folder& folder);

  // Returns the newest generation that a checkpoint is of; 0: there is no checkpoint.
  uint64_t newest_published() const {
    return published_.empty() ? 0 : published_.rbegin()->first.first;
  }

  // Called when a generation was opened on every shard: nobody may publish for an earlier one any
  // more.
  void opened(uint64_t generation) { opened_ = std::max(opened_, generation); }

  void lease(const std::string& name) { leased_.insert(name); }
  void release(const std::string& name) { leased_.erase(name); }

  // The faults of the storage.
  void fail_next() { failing_ = true; }
  // Loses the last rename if no operation has followed it; the final checkpoint's is on the disk
  // before any process ends.
  void lose_last_rename();

  // The final checkpoint, once there is one.
  const Folder* final() const;

 private:
  void operate();

  using Name = std::pair<uint64_t, uint64_t>;  // generation, step: readers' order
  const int shards_;
  std::set<uint64_t> generations_;
  uint64_t opened_ = 0;
  std::map<std::string, std::map<int, File>> temporaries_;
  uint64_t begun_ = 0;
  std::map<Name, Folder> published_;
  std::optional<Name> last_;
  std::set<std::string> leased_;
  bool failing_ = false;
};

}  // namespace muster::simulation
