#pragma once

#include <string>
#include <vector>

#include "common/document.h"
#include "operator/convert/pipeline_text.h"

namespace muster::convert {

struct ConvertedPipeline {
  Json job;                              // a TrainingJob, without its schema's defaults
  std::vector<std::string> to_set;       // paths that the pipeline leaves open: "FIELD: VALUE"
  std::vector<std::string> not_carried;  // a sentence for each setting that the job does not have
};

// Makes the TrainingJob `name` of a pipeline with an ssd_mobilenet_v1. Every setting of the
// pipeline is in the job, is what Muster's model has anyway, or is named in not_carried. Throws
// Invalid for any other model, and where the training or its data are missing.
ConvertedPipeline convert_pipeline(const ParsedPipeline& parsed, const std::string& name);

// Returns a name that a TrainingJob can have, made of a file's: "ssd-mobilenet-v1-coco".
std::string job_name_of(const std::string& file_name);

}  // namespace muster::convert
