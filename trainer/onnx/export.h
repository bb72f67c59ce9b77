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
//                    and offset are part of the model.
// and the outputs, all float32:
//   "probabilities"  [batch, classes] of a model that classifies
//   "boxes"          [batch, anchors, 4] of a detector: ymin, xmin, ymax and xmax relative to the
//                    image, which is 0 to 1; neither clipped nor suppressed
//   "scores"         [batch, anchors, classes] of a detector, without the background
//   "outputs"        [batch, outputs] of any other model
// The metadata have the names of the classes as a list in JSON ("classes").
// `model` must be complete, with its input's shape; `parameters` are its layout's size.
onnxformat::Model to_onnx(const compute::ModelSpec& model, std::span<const float> parameters,
                          const data::SampleFormat& samples);

// Writes model/model.onnx below the job's folder. Returns its path; nothing, after a warning in the
// log and remove_onnx(), for a model of more than 2 GB, which is more than ONNX's format can hold.
// Throws WriteError.
std::optional<std::filesystem::path> export_onnx(const std::filesystem::path& job_directory,
                                                 const compute::ModelSpec& model,
                                                 std::span<const float> parameters,
                                                 const data::SampleFormat& samples);

// Removes the model/model.onnx of an earlier export, if there is one. Throws WriteError.
void remove_onnx(const std::filesystem::path& job_directory);

}  // namespace muster::onnx
