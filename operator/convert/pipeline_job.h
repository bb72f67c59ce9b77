#pragma once

#include <string>

#include "operator/convert/converted.h"
#include "operator/convert/pipeline_text.h"

namespace muster::convert {

// Makes the TrainingJob `name` of a pipeline with an ssd_mobilenet_v1. Every setting of the
// pipeline is in the job, is what Muster's model has anyway, or is named in not_carried. Throws
// Invalid for any other model, and where the training or its data are missing.
Converted convert_pipeline(const ParsedPipeline& parsed, const std::string& name);

// Returns a name that a TrainingJob can have, made of a file's: "ssd-mobilenet-v1-coco".
std::string job_name_of(const std::string& file_name);

}  // namespace muster::convert
