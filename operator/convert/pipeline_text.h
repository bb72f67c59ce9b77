#pragma once

#include <string>
#include <vector>

#include "proto/muster/pipeline.pb.h"

namespace muster::convert {

// One file of a training by the TF Object Detection API, in protobuf's text format.
struct PipelineFile {
  std::string name;
  std::string text;
};

struct ParsedPipeline {
  pipeline::Pipeline pipeline;
  std::vector<std::string> unknown;  // "pipeline.config:175: graph_rewriter", in order
};

// Reads a pipeline file, or the files of a training that was split: the configuration of the model,
// the training, the input and the evaluation. The fields of a file tell which part it is. If there
// are two inputs, the first is that of the training. Fields that muster/pipeline.proto does not
// have are skipped, and named in `unknown`. Throws Invalid, naming file and line, for a text that
// is no such configuration, and for a part that is given twice.
ParsedPipeline parse_pipeline(const std::vector<PipelineFile>& files);

}  // namespace muster::convert
