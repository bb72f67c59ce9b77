#include "trainer/loop/batches/completion.h"

#include <algorithm>
#include <utility>

#include "trainer/checkpoint/start/resume.h"
#include "trainer/loop/batches/stopping.h"
#include "trainer/spec/changes.h"
#include "trainer/spec/convert.h"

namespace muster::loop {

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

bool Completion::covers(const checkpoint::Manifest& manifest) const {
  if (!manifest.is_final()) return false;
  const checkpoint::Position at = checkpoint::resume(manifest, training_, distributed_).position;
  const bool is_whole = spec_.steps ? at.step >= *spec_.steps : at.epoch >= *spec_.epochs;
  return is_whole || has_ended(at.evaluations, spec_) ||
         (manifest.ended == checkpoint::End::length && has_same_end(manifest.training));
}

}  // namespace muster::loop
