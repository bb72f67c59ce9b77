#pragma once

#include <optional>
#include <span>

#include "trainer/checkpoint/store/store.h"
#include "trainer/group/membership.h"
#include "trainer/loop/evaluation/evaluation.h"
#include "trainer/loop/evaluation/validator.h"
#include "trainer/loop/recorder.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// Returns the checkpoint whose weights are exported after a training that ended with `final`:
// `final` or, with restoreBest, the best checkpoint. Warns if the best checkpoint is gone.
checkpoint::Store::Found to_export(const checkpoint::Store& store,
                                   const checkpoint::Store::Found& final,
                                   const spec::TrainingSpec& spec);

// Writes rank 0's results of a training that has ended: the exported model and result.json.
class Conclusion {
 public:
  // These may be null: `store` without a storage folder, `data` if an evaluator evaluates,
  // `validator` if nothing was evaluated within the training. The references must outlive this
  // object.
  Conclusion(const group::Membership& membership, Assembly& assembly, Recorder& recorder,
             const checkpoint::Store* store, EvaluationData* data, Validator* validator)
      : membership_(membership),
        assembly_(assembly),
        recorder_(recorder),
        store_(store),
        data_(data),
        validator_(validator) {}

  // Does the work of Leader::conclude().
  Json write(const std::optional<checkpoint::Store::Found>& final,
             const checkpoint::Position& position);

 private:
  Json evaluate_final(const checkpoint::Position& position);
  Json describe(const checkpoint::Position& position) const;
  Json describe_best(const checkpoint::Position& position) const;
  void export_model(std::span<const float> parameters, Json& result) const;

  const group::Membership& membership_;
  Assembly& assembly_;
  Recorder& recorder_;
  const checkpoint::Store* store_;
  EvaluationData* data_;
  Validator* validator_;
};

}  // namespace muster::loop
