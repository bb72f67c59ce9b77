#include "trainer/checkpoint/start/completion.h"

#include <algorithm>
#include <utility>

#include "trainer/checkpoint/start/resume.h"
#include "trainer/spec/changes.h"
#include "trainer/spec/convert.h"

namespace muster::checkpoint {

bool is_stopped(const Evaluations& evaluations,
                const std::optional<spec::EarlyStoppingSpec>& rule) {
  return rule && evaluations.without_improvement >= std::max<uint64_t>(1, rule->patience);
}

bool has_ended(const Evaluations& evaluations, const spec::TrainingSpec& spec) {
  return evaluations.reached || is_stopped(evaluations, spec.early_stopping);
}

End end_of(const Evaluations& evaluations, const spec::TrainingSpec& spec) {
  if (evaluations.reached) return End::stop_when;
  return is_stopped(evaluations, spec.early_stopping) ? End::early_stopping : End::length;
}

bool is_whole(const Position& position, const spec::TrainingSpec& spec) {
  return spec.steps ? position.step >= *spec.steps : position.epoch >= *spec.epochs;
}

Completion::Completion(Json training, bool distributed)
    : training_(std::move(training)),
      spec_(spec::to_training_spec(training_)),
      distributed_(distributed) {}

// Whether the length is the same. A training whose steps counted other batches before, because it
// was synchronous, has ended at another step.
bool Completion::has_same_end(const Json& other) const {
  const std::optional<Json> made_with = spec::with_defaults(other);
  return made_with &&
         std::ranges::none_of(spec::changes(*made_with, training_), [](const spec::Change& change) {
           return spec::bearing_of(change.path) == spec::Bearing::end;
         });
}

bool Completion::covers(const Manifest& manifest) const {
  if (!manifest.is_final()) return false;
  const Position at = resume(manifest, training_, distributed_).position;
  return is_whole(at, spec_) || has_ended(at.evaluations, spec_) ||
         (manifest.ended == End::length && has_same_end(manifest.training));
}

}  // namespace muster::checkpoint
