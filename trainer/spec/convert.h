#pragma once

#include "trainer/spec/training_spec.h"

namespace muster::spec {

// Converts a value that has been checked (check.h). Precondition: no problems.
TrainingSpec to_training_spec(const Json& training);

// Convert parts of a training block, for checks before the whole block is known to be sound.
// Precondition: no problems in the value.
compute::ModelSpec to_model(const Json& model);
compute::LossKind to_loss(const Json& model);
// Converts the value of data.train (`shuffle`), data.validation or data.test for a model.
DataSource to_source_for(const compute::ModelSpec& model, const Json& source, bool shuffle);

}  // namespace muster::spec
