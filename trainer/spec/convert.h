#pragma once

#include "trainer/spec/training_spec.h"

namespace muster::spec {

// The parts of to_training_spec that checks need before the whole block is known to be sound.
// Precondition: no problems in the value.
compute::ModelSpec to_model(const Json& model);
compute::LossKind to_loss(const Json& model);

}  // namespace muster::spec
