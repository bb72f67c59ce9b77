#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "proto/muster/onnx.pb.h"
#include "trainer/compute/models/model_spec.h"
#include "trainer/data/sources/sample_format.h"

namespace muster::onnx {

// Returns the model as ONNX (https://onnx.ai), of IR version 8 with the operators of version 17.
//   "input"          [batch, shape of a sample]: the elements of samples, uint8 or float32. Scale
//                    and offset are part of the model. A model that was trained on a table has an
//                    input for each column instead; see table_columns.h.
// and the outputs, all float32:
//   "probabilities"  [batch, classes] of a model that classifies
//   "boxes"          [batch, anchors, 4] of a detector: ymin, xmin, ymax and xmax relative to the
//                    image, which is 0 to 1; neither clipped nor suppressed
//   "scores"         [batch, anchors, classes] of a detector, without the background
//   "outputs"        [batch, outputs] of any other model; of a table's target in its own unit
// The metadata have the names of the classes as a list in JSON ("classes"). `model` must be
// complete, with the shape of its input; `parameters` has the size of its layout.
onnxformat::Model to_onnx(const compute::ModelSpec& model, std::span<const float> parameters,
                          const data::SampleFormat& samples);

// Writes model/model.onnx below the job's folder. Returns its path. For a model of more than 2 GB,
// which ONNX's format cannot hold, logs a warning, calls remove_onnx() and returns nothing. Throws
// WriteError.
std::optional<std::filesystem::path> export_onnx(const std::filesystem::path& job_directory,
                                                 const compute::ModelSpec& model,
                                                 std::span<const float> parameters,
                                                 const data::SampleFormat& samples);

// Removes the model/model.onnx of an earlier export, if there is one. Throws WriteError.
void remove_onnx(const std::filesystem::path& job_directory);

}  // namespace muster::onnx
