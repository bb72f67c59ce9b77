#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/error.h"
#include "common/program/hang_guard.h"
#include "common/threads/mutex.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/folder/generations.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// The final checkpoint would have the name of one that is published already; this happens when a
// step turns out to be the last only after its checkpoint was published. The final checkpoint then
// needs a generation of its own.
class NameTaken : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

// Decides when to save, and saves on a thread of its own: the training loop only waits for the
// copy.
class Checkpointer {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::filesystem::path storage;
    std::string job_uid;
    spec::CheckpointSpec when;
    checkpoint::Manifest manifest;  // the fields equal in all of the job's checkpoints
    // All are called on the checkpointer's thread, or on the caller's of take_now().
    std::function<void(uint64_t step, double seconds)> published;
    std::function<void()> failed;
    // A checkpoint has been published whose state was taken after request(name) was called.
    std::function<void(const std::string& name, const checkpoint::Store::Found& found)> met;
  };

  Checkpointer(checkpoint::Store& store, Options options);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Steps, epochs and time count from here.
  void begin(const checkpoint::Position& position, Clock::time_point now);
  // True if a checkpoint should be taken at this step and none is being written.
  bool due(const checkpoint::Position& position, Clock::time_point now) const;
  // Waits for the checkpoint being written, now at full speed. Returns the name of the newest
  // published folder, or "".
  std::string newest();
  // Asks for a checkpoint as soon as possible; a checkpoint being written is finished at full
  // speed. Thread-safe.
  void request();
  // Asks for one that meets the request of this name, unless the newest that is published or being
  // written does. The name goes into the manifests of all that are taken from here on, so if one
  // cannot be written, the next meets the request, and this may be called again to have it sooner.
  // Thread-safe.
  void request(const std::string& name);
  // Says which request the checkpoint has met from which training goes on.
  void met_before(const std::string& name);

  // Copies the state and writes it in the background. An error of the disk or of a shard is logged,
  // as a warning when it is the first in a row and then twice a minute: training goes on, and the
  // next checkpoint may succeed.
  void take(Synchronizer& synchronizer, const Json& metrics);
  // Does the same for the best state so far; first waits for the checkpoint being written. No other
  // is due at this step then. If the best cannot be written, it is tried again instead of the next
  // checkpoint and before take_now(), until a better one replaces it: a checkpoint that names it as
  // the best is published only after it.
  void take_best(Synchronizer& synchronizer, const Json& metrics);
  // Waits for the checkpoint being written, now at full speed, then takes one and waits for it too.
  // Throws NameTaken, and what Snapshot::write and Store::publish throw.
  checkpoint::Store::Found take_now(Synchronizer& synchronizer, const Json& metrics,
                                    std::optional<checkpoint::End> ended);

 private:
  struct Task {
    std::unique_ptr<Snapshot> snapshot;
    checkpoint::Manifest manifest;
    double bytes_per_second = 0;  // 0: full speed, somebody waits for it
    bool best = false;
  };
  void start(Task task);
  std::optional<Task> take_owed(uint64_t generation);
  Task prepare(Synchronizer& synchronizer, const Json& metrics,
               std::optional<checkpoint::End> ended);
  checkpoint::Store::Found save(Task& task);
  checkpoint::Store::Found write(Task& task);
  void note_request(const Task& task, const checkpoint::Store::Found& found);
  bool try_to_save(Task& task);
  void run();
  void hurry_locked() MUSTER_REQUIRES(mutex_);
  void wait_until_idle();
  void tell_failure(uint64_t step, const std::string& why);

  checkpoint::Store& store_;
  const Options options_;
  uint64_t last_step_ = 0;
  uint64_t last_epoch_ = 0;
  Clock::time_point last_time_;
  std::atomic<bool> requested_{false};
  // Used by the thread that takes or saves a checkpoint; never by two at once.
  int failures_ = 0;  // in a row
  // While the storage takes no checkpoint: since the first one that it did not take.
  std::optional<KnownStall> failing_;
  Clock::time_point told_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::optional<Task> task_ MUSTER_GUARDED_BY(mutex_);
  std::optional<Task> owed_
      MUSTER_GUARDED_BY(mutex_);  // the best state, if it could not be written
  Snapshot* saving_ MUSTER_GUARDED_BY(mutex_) = nullptr;  // in the background
  std::atomic<bool> busy_{false};
  bool closing_ MUSTER_GUARDED_BY(mutex_) = false;
  // Names of requests: the newest one; that of the newest checkpoint that is published or being
  // written; and that of the newest published one.
  std::string wanted_ MUSTER_GUARDED_BY(mutex_);
  std::string taken_ MUSTER_GUARDED_BY(mutex_);
  std::string met_ MUSTER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster::loop
