#include "trainer/loop/batches/completion.h"

#include <utility>

#include "trainer/checkpoint/start/resume.h"
#include "trainer/loop/batches/stopping.h"
#include "trainer/spec/convert.h"

namespace muster::loop {

Completion::Completion(Json training, bool distributed)
    : training_(std::move(training)),
      spec_(spec::to_training_spec(training_)),
      distributed_(distributed) {}

bool Completion::covers(const checkpoint::Manifest& manifest) const {
  if (!manifest.is_final()) return false;
  const checkpoint::Position at = checkpoint::resume(manifest, training_, distributed_).position;
  const bool is_whole = spec_.steps ? at.step >= *spec_.steps : at.epoch >= *spec_.epochs;
  return is_whole || has_ended(at.evaluations, spec_);
}

}  // namespace muster::loop
