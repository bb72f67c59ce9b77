#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/document.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/store.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::checkpoint {

// On shared storage, below the job's folder (docs/checkpoints.md):
//   checkpoints/ckpt-<step>-g<generation>/
//     model-00000-of-00002.safetensors      weights and state, one file a shard
//     optimizer-00000-of-00002.safetensors  slots, "<slot>/<tensor>"
//     model.safetensors.index.json          Hugging Face's index; in the manifest like the others
//     manifest.json                         what readers trust: see Manifest
//   checkpoints/checkpoint                  TensorFlow's CheckpointState text
//   checkpoints/best                        name of the folder that is kept whatever its age
//   model/model.safetensors                 the final export: whole tensors
// A tensor cut between shards stands in each file as its rows, with its logical shape and first row
// in the manifest; any shard count restores any other's.

// The pieces of buffers (parameters or one slot) that lie in `range` of the layout; `values` is the
// memory of that range alone. Padding is left out. `prefix` is "" or "<slot>/". Throws Invalid if
// the range cuts a tensor inside a row.
std::vector<TensorPiece> pieces_of(const compute::ParameterLayout& layout, compute::Range range,
                                   std::span<const float> values, const std::string& prefix);

// What a shard holds: parameters and slots, each the memory of `range` alone.
struct State {
  const compute::ParameterLayout& layout;
  compute::Range range;
  std::span<const float> parameters;
  std::vector<std::span<const float>> slots;
  const std::vector<std::string>& slot_names;
};

// Writes the files of shard `shard` of `shards`, on a thread that gives way to all others. Throws
// as write_safetensors does, and Unavailable where the system gives no thread.
std::vector<FileEntry> write_state(const std::filesystem::path& directory, const State& state,
                                   int shard, int shards, SpeedLimit& limit);

// SHA-256 of the parameters (trainable, frozen, state; no slots, no padding) in manifest order: the
// layout's tensor order.
std::string weights_digest(const compute::ParameterLayout& layout,
                           std::span<const float> parameters);

// model/model.safetensors, whole tensors, published by rename. Throws as write_safetensors does.
std::filesystem::path export_model(const std::filesystem::path& job_directory,
                                   const compute::ParameterLayout& layout,
                                   std::span<const float> parameters, const Json& training);

// `initializeFrom`: puts the weights of `from`, a published checkpoint's folder (verified first) or
// one safetensors file such as the export, in the place of the initializers'. Tensors are known by
// name; `parameters` are layout.size() floats. Returns the names of those that `from` has not: they
// are left as they were. Throws Invalid, its message beginning with `field`, where a tensor has
// another shape or a value that is not finite, where `from` has none of the model's, and where it
// cannot be used at all; `parameters` are worth nothing then.
std::vector<std::string> take_weights(const std::string& field, const std::filesystem::path& from,
                                      const compute::ParameterLayout& layout,
                                      std::span<float> parameters);

}  // namespace muster::checkpoint
