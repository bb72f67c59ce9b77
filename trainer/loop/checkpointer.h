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

// The final checkpoint would have the name of a published checkpoint. This happens if a step turns
// out to be the last one only after its checkpoint was published. The final checkpoint then needs a
// new generation.
class NameTaken : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

// Decides when to save, and saves on a separate thread: the training loop only waits for the copy
// of the state.
class Checkpointer {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::filesystem::path storage;
    std::string job_uid;
    spec::CheckpointSpec when;
    checkpoint::Manifest manifest;  // the fields equal in all of the job's checkpoints
    // The functions below are called on the checkpointer's thread, or on the thread that calls
    // take_now().
    std::function<void(uint64_t step, double seconds)> published;
    std::function<void()> failed;
    // Called when a checkpoint is published whose state was copied after the call of request(name).
    std::function<void(const std::string& name, const checkpoint::Store::Found& found)> met;
  };

  Checkpointer(checkpoint::Store& store, Options options);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Steps, epochs and time until the next checkpoint count from here.
  void begin(const checkpoint::Position& position, Clock::time_point now);
  // True if a checkpoint should be taken at this step and none is being written.
  bool due(const checkpoint::Position& position, Clock::time_point now) const;
  // Waits for the checkpoint being written, now at full speed. Returns the name of the newest
  // published folder, or "".
  std::string newest();
  // Asks for a checkpoint as soon as possible; a checkpoint being written is finished at full
  // speed. Thread-safe.
  void request();
  // Asks for a checkpoint for the request of this name, unless the newest checkpoint (published or
  // being written) meets it already. The manifests of all checkpoints from here on contain the
  // name. So if a checkpoint cannot be written, the next one meets the request; another call makes
  // it come sooner. Thread-safe.
  void request(const std::string& name);
  // Tells the request that was met by the checkpoint from which training continues.
  void met_before(const std::string& name);

  // Copies the state and writes it in the background. An error of the disk or of a shard is logged,
  // as a warning at the first of several errors in a row and then twice a minute. Training
  // continues, and the next checkpoint may succeed.
  void take(Synchronizer& synchronizer, const Json& metrics);
  // Does the same for the best state so far, after waiting for the checkpoint being written. No
  // other checkpoint is due at this step afterwards. If the best state cannot be written, writing
  // is repeated instead of the next checkpoint and before take_now(), until a better state replaces
  // it: a checkpoint that names it as the best must be published after it.
  void take_best(Synchronizer& synchronizer, const Json& metrics);
  // Waits for the checkpoint being written, now at full speed, then takes a new checkpoint and
  // waits for it. Throws NameTaken, and the errors of Snapshot::write and Store::publish.
  checkpoint::Store::Found take_now(Synchronizer& synchronizer, const Json& metrics,
                                    std::optional<checkpoint::End> ended);

 private:
  struct Task {
    std::unique_ptr<Snapshot> snapshot;
    checkpoint::Manifest manifest;
    double bytes_per_second = 0;  // 0: full speed, because something waits for it
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
      MUSTER_GUARDED_BY(mutex_);  // the best state, if it could not be written yet
  // The snapshot being written in the background.
  Snapshot* saving_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> busy_{false};
  bool closing_ MUSTER_GUARDED_BY(mutex_) = false;
  // Names of requests: the newest request; the request in the newest checkpoint (published or being
  // written); the request in the newest published checkpoint.
  std::string wanted_ MUSTER_GUARDED_BY(mutex_);
  std::string taken_ MUSTER_GUARDED_BY(mutex_);
  std::string met_ MUSTER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster::loop
