#pragma once

#include <vector>

#include "common/documents/document.h"
#include "operator/convert/differences.h"
#include "proto/muster/pipeline.pb.h"

namespace muster::convert {

// Throws Invalid, naming the model, unless Muster has the pipeline's model: ssd_mobilenet_v1 with
// images of a fixed size.
void require_model(const pipeline::Pipeline& pipeline);

// Returns spec.training.model for a model of the pipeline.
Json model_of(const pipeline::Ssd& given);

// Returns the settings in which the model differs from Muster's ssd-mobilenet-v1, except the
// settings that model_of() and the optimizer take over.
std::vector<Difference> model_differences(const pipeline::Ssd& given);

}  // namespace muster::convert
