#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/checkpoint/files/safetensors.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::checkpoint {

// The files on shared storage, below the job's folder (docs/reference/files.md):
//   checkpoints/ckpt-<step>-g<generation>/
//     model-00000-of-00002.safetensors      weights and state, one file for each shard
//     optimizer-00000-of-00002.safetensors  slots, "<slot>/<tensor>"
//     model.safetensors.index.json          Hugging Face's index; in the manifest like the others
//     manifest.json                         readers trust only this: see Manifest
//   checkpoints/checkpoint                  TensorFlow's CheckpointState text
//   checkpoints/best                        name of the folder that is kept whatever its age
//   model/model.safetensors                 the final export: whole tensors
// If a tensor is divided among shards, each file has its rows of the tensor, and the manifest has
// the logical shape and the first row. Any number of shards can restore a checkpoint that another
// number of shards has written.

// Returns the pieces of a buffer (parameters or one slot) within `range` of the layout; `values` is
// the memory of that range only. Padding is left out. `prefix` is "" or "<slot>/". Throws Invalid
// if the range cuts a tensor inside a row.
std::vector<TensorPiece> pieces_of(const compute::ParameterLayout& layout, compute::Range range,
                                   std::span<const float> values, const std::string& prefix);

// The content of a shard: parameters and slots, each with the memory of `range` only.
struct State {
  const compute::ParameterLayout& layout;
  compute::Range range;
  std::span<const float> parameters;
  std::vector<std::span<const float>> slots;
  const std::vector<std::string>& slot_names;
};

// Writes the files of shard `shard` of `shards`, on a low-priority thread. Throws the errors of
// write_safetensors(), and Unavailable if no thread can be created.
std::vector<FileEntry> write_state(const std::filesystem::path& directory, const State& state,
                                   int shard, int shards, SpeedLimit& limit);

// Returns the SHA-256 of the parameters (trainable, frozen, state; no slots, no padding) in
// manifest order, which is the layout's tensor order.
std::string weights_digest(const compute::ParameterLayout& layout,
                           std::span<const float> parameters);

// Writes model/model.safetensors, with whole tensors, and publishes it by rename. The file's
// metadata contain the training and the format of the samples (data::SampleFormat), as JSON texts.
// Throws the errors of write_safetensors().
std::filesystem::path export_model(const std::filesystem::path& job_directory,
                                   const compute::ParameterLayout& layout,
                                   std::span<const float> parameters, const Json& training,
                                   const Json& samples = Json::object());

}  // namespace muster::checkpoint
