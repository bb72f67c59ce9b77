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

// Reads a pipeline file, or the files of a training that was split: the model's, the training's and
// the input's configuration, and those of the evaluation, each told by its fields. Of two inputs
// the first is the training's. Fields that muster/pipeline.proto does not have are passed over, and
// named. Throws Invalid naming file and line for a text that is no such configuration, and for a
// part that is given twice.
ParsedPipeline parse_pipeline(const std::vector<PipelineFile>& files);

}  // namespace muster::convert
