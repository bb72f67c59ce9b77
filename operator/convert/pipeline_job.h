#pragma once

#include <string>

#include "operator/convert/converted.h"
#include "operator/convert/pipeline_text.h"

namespace muster::convert {

// Makes the TrainingJob `name` of a pipeline with an ssd_mobilenet_v1. Each setting of the pipeline
// is in the job, is part of Muster's model anyway, or is named in not_carried. Throws Invalid for
// any other model, and if the training or its data are missing.
Converted convert_pipeline(const ParsedPipeline& parsed, const std::string& name);

// Returns a valid name for a TrainingJob, made from the name of a file: "ssd-mobilenet-v1-coco".
std::string job_name_of(const std::string& file_name);

}  // namespace muster::convert
