#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "trainer/checkpoint/store/store.h"
#include "trainer/group/membership.h"
#include "trainer/loop/checkpoint_requests.h"
#include "trainer/loop/checkpointer.h"
#include "trainer/loop/evaluation/evaluation.h"
#include "trainer/loop/evaluation/stop_rule.h"
#include "trainer/loop/evaluation/validator.h"
#include "trainer/loop/recorder.h"
#include "trainer/loop/training.h"
#include "trainer/spec/changes.h"

namespace muster::loop {

// Throws Invalid (kBadInput) if `final`, a checkpoint that the Completion covers, is from another
// job or from a training without a job, and `training` has other settings that decide the weights.
// In this case nothing is left to train, and the results would be those of the other training.
void require_same_training(const checkpoint::Store::Found& final,
                           const group::Membership& membership, const Training& training);

// Returns the job's checkpoints; null without a storage folder.
std::unique_ptr<checkpoint::Store> open_store(const group::Membership& membership,
                                              const Assembly& assembly);

// The tasks of rank 0 (or of a process that trains alone): it writes the job's files. Without a
// storage folder nothing is written.
class Leader {
 public:
  // Opens the data that rank 0 will evaluate (within the training, or because there is no
  // evaluator) and creates the folders, so that problems with reading or writing appear before the
  // first step. Waits while the storage is full. Throws Invalid and WriteError. `store` comes from
  // open_store(); `published` is called for each checkpoint, on the writing thread. The references
  // must outlive the Leader.
  Leader(const group::Membership& membership, Assembly& assembly, metrics::Reporter& reporter,
         std::unique_ptr<checkpoint::Store> store, std::function<void(uint64_t step)> published,
         std::stop_token stop);

  // Returns the position at which this training resumes from a checkpoint, counted in this
  // training's batches. Throws Invalid if it cannot resume from it: a checkpoint of another model,
  // of batches that do not fit, or (determinism: strict) one from which the bits would differ. Logs
  // all other changes.
  checkpoint::Position resume_at(const checkpoint::Store::Found& found) const;

  // Call this once, before the training. Continues the numbers of `newest`, the newest checkpoint
  // if there is one, and takes requests for checkpoints from here on.
  void begin(const std::optional<checkpoint::Store::Found>& newest);

  Recorder& recorder() { return recorder_; }
  Checkpointer* checkpointer() { return checkpointer_.get(); }
  // Null if nothing is evaluated within the training.
  Validator* validator() { return validator_ ? &*validator_ : nullptr; }
  // Null if only the training's length or evaluation within the training can end it.
  StopRule* stop_rule() { return stop_rule_ ? &*stop_rule_ : nullptr; }
  const checkpoint::Store* store() const { return store_.get(); }

  // Whether a checkpoint is due at `position`, as far as is known now.
  bool saves_at(const checkpoint::Position& position) const;
  // Saves the current state before the process leaves. An error is logged.
  void save(Synchronizer& synchronizer);
  // Takes the final checkpoint. Throws the errors of Checkpointer::take_now. Returns nothing
  // without storage.
  std::optional<checkpoint::Store::Found> save_final(Synchronizer& synchronizer);
  // Exports the model, evaluates it if no other process does, writes result.json and returns its
  // content. The engine's own parameters become those of the final checkpoint, if there is one, or
  // with restoreBest those of the best checkpoint. The group's memory stays unchanged, because the
  // group may have to continue with it. `position` is where training has ended; the final
  // checkpoint has the same position.
  Json conclude(const std::optional<checkpoint::Store::Found>& final,
                const checkpoint::Position& position);
  // Does the same for a training that was finished earlier; the position is that of its final
  // checkpoint.
  Json conclude_again(const checkpoint::Store::Found& final);

 private:
  void open_checkpointer(std::function<void(uint64_t step)> published, std::stop_token stop);
  void tell_met(const std::string& request, const checkpoint::Store::Found& found);
  void open_stop_rule();
  void say_resumption(const std::string& trained_by, const std::string& name,
                      const std::vector<spec::Change>& changed) const;
  void check_layout(const checkpoint::Store::Found& found) const;
  void check_determinism(const checkpoint::Store::Found& found) const;
  const group::Membership& membership_;
  Assembly& assembly_;
  metrics::Reporter& reporter_;
  std::optional<EvaluationData> data_;  // nothing if only an evaluator evaluates
  Recorder recorder_;
  std::unique_ptr<checkpoint::Store> store_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::optional<Validator> validator_;
  std::optional<StopRule> stop_rule_;
  // The last member, because it calls the checkpointer.
  std::optional<CheckpointRequests> requests_;
};

}  // namespace muster::loop
