#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "trainer/checkpoint/store.h"
#include "trainer/group/membership.h"
#include "trainer/loop/checkpointer.h"
#include "trainer/loop/evaluation/evaluation.h"
#include "trainer/loop/evaluation/validator.h"
#include "trainer/loop/recorder.h"
#include "trainer/loop/training.h"
#include "trainer/spec/changes.h"

namespace muster::loop {

// True for the final checkpoint of a training that has been done already.
bool is_finished(const std::optional<checkpoint::Store::Found>& newest, const Workload& workload);

// Throws Invalid (kBadInput) where `final`, which is_finished(), is of another job or of a training
// without a job, and `training` differs from it in what decides the weights: there is nothing left
// to train, and the results would be those of the other training.
void require_same_training(const checkpoint::Store::Found& final,
                           const group::Membership& membership, const Training& training);

// The checkpoint whose weights a training that has ended with `final` exports: that, or with
// restoreBest the best one. Warns where the best is gone.
checkpoint::Store::Found to_export(const checkpoint::Store& store,
                                   const checkpoint::Store::Found& final,
                                   const spec::TrainingSpec& spec);

// The job's checkpoints; null without a storage folder.
std::unique_ptr<checkpoint::Store> open_store(const group::Membership& membership,
                                              const Assembly& assembly);

// What only rank 0 (or a process by itself) does: it writes the job's files. Without a storage
// folder nothing is written.
class Leader {
 public:
  // Opens the data that it will evaluate, within the training or where no evaluator does, and makes
  // the folders: what cannot be read or written is found before the first step; for a storage that
  // is full it waits. Throws Invalid and WriteError. `store` is open_store()'s; `published` is
  // called for each checkpoint, on the writing thread. The references must outlive it.
  Leader(const group::Membership& membership, Assembly& assembly, metrics::Reporter& reporter,
         std::unique_ptr<checkpoint::Store> store, std::function<void(uint64_t step)> published,
         std::stop_token stop);

  // Where this training goes on from a checkpoint, in its own batches. Throws Invalid where it
  // cannot: one of another model, of batches that do not fit, or (determinism: strict) one from
  // which the bits would not be the same. Says what else has changed since.
  checkpoint::Position resume_at(const checkpoint::Store::Found& found) const;

  Recorder& recorder() { return recorder_; }
  Checkpointer* checkpointer() { return checkpointer_.get(); }
  // Null where nothing is evaluated within the training.
  Validator* validator() { return validator_ ? &*validator_ : nullptr; }
  const checkpoint::Store* store() const { return store_.get(); }

  // Saves what there is, before leaving. An error is logged.
  void save(Synchronizer& synchronizer);
  // The final checkpoint. Throws as Checkpointer::take_now does. Nothing without storage.
  std::optional<checkpoint::Store::Found> save_final(Synchronizer& synchronizer);
  // Export, evaluation where nobody else does it, result.json; returns that. The engine's own
  // parameters become the final checkpoint's, where there is one, or with restoreBest those of the
  // best: what it used of the group stays as it is, for the group may have to go on with that.
  // `position` is where training has ended, that checkpoint's likewise.
  Json conclude(const std::optional<checkpoint::Store::Found>& final,
                const checkpoint::Position& position);
  // The same of a training that was finished before: its final checkpoint says the rest.
  Json conclude_again(const checkpoint::Store::Found& final);

 private:
  Json evaluate_final(uint64_t step);
  void open_checkpointer(std::function<void(uint64_t step)> published, std::stop_token stop);
  Json describe(const checkpoint::Position& position) const;
  Json describe_best(const checkpoint::Position& position) const;
  void say_resumption(const std::string& trained_by, const std::string& name,
                      const std::vector<spec::Change>& changed) const;
  void check_layout(const checkpoint::Store::Found& found) const;
  void check_determinism(const checkpoint::Store::Found& found) const;
  const group::Membership& membership_;
  Assembly& assembly_;
  metrics::Reporter& reporter_;
  std::optional<EvaluationData> data_;  // none where only an evaluator evaluates
  Recorder recorder_;
  std::unique_ptr<checkpoint::Store> store_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::optional<Validator> validator_;
};

}  // namespace muster::loop
