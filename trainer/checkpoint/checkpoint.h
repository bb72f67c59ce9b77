#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/document.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::checkpoint {

// On shared storage, below the job's folder (docs/checkpoints.md):
//   checkpoints/ckpt-<step>-g<generation>/
//     model-00000-of-00002.safetensors      weights and state, one file a shard
//     optimizer-00000-of-00002.safetensors  slots, "<slot>/<tensor>"
//     model.safetensors.index.json          Hugging Face's index
//     manifest.json                         what readers trust: see Manifest
//   checkpoints/checkpoint                  TensorFlow's CheckpointState text
//   model/model.safetensors                 the final export: whole tensors
// A tensor cut between shards stands in each file as its rows, with its logical shape and first row in
// the manifest; any shard count restores any other's.

struct FileEntry {
  std::string name;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
};

// Where training stands, besides the tensors.
struct Position {
  uint64_t step = 0;        // committed updates
  uint64_t epoch = 0;
  uint64_t next_batch = 0;  // in the epoch: sync: group batches; async: tickets handed out and done
  uint64_t optimizer_t = 0;
  std::vector<uint64_t> outstanding;  // async: tickets not done
};

struct Manifest {
  int version = 1;
  std::string job_uid;
  uint64_t generation = 0;
  Position position;
  bool final = false;
  std::string model;              // ModelSpec::name
  std::string layout_fingerprint;
  std::string fingerprint;        // determinism: build, instruction set, precision, threads
  std::vector<uint64_t> shard_steps;  // async: each shard's own
  std::vector<FileEntry> files;
  Json metrics;                   // loss and so on at this step
  Json training;                  // the training spec it was made with
};

struct TensorPiece {              // rows [first_row, first_row + rows) of a tensor, in memory
  std::string name;               // "hidden_1/kernel", or "m/hidden_1/kernel" for a slot
  std::vector<int64_t> shape;     // logical, whole
  int64_t first_row = 0;
  int64_t rows = 0;               // of the first axis
  std::span<const float> values;
};

// Writes `pieces` as one safetensors file (F32), fsynced. Returns its entry. Throws WriteError.
FileEntry write_safetensors(const std::filesystem::path& path, std::span<const TensorPiece> pieces,
                            const std::map<std::string, std::string>& metadata);

// A safetensors file mapped for reading. Throws Invalid naming file and byte on anything malformed:
// header beyond the file, overlapping or missing ranges, unknown dtype, JSON errors.
class SafetensorsFile {
 public:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    std::span<const float> values;
  };
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  void* mapping_ = nullptr;
  size_t bytes_ = 0;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// The pieces of buffers (parameters or one slot) that lie in `range` of the layout; `values` is the
// memory of that range alone. Padding is left out. `prefix` is "" or "<slot>/".
std::vector<TensorPiece> pieces_of(const compute::ParameterLayout& layout, compute::Range range,
                                   std::span<const float> values, const std::string& prefix);

// A job's checkpoints on shared storage. Publishing follows write, fsync, rename, fsync; a reader
// trusts only a manifest whose files have the sizes and checksums it names.
class Store {
 public:
  Store(std::filesystem::path directory, int keep);

  // A fresh "ckpt-<step>.tmp-<unique>" for shards to write into. Throws WriteError.
  std::filesystem::path begin(uint64_t step);
  // Index, manifest, fsync, rename to its final name, CheckpointState, pruning of the oldest beyond
  // `keep` that nobody leases (the final one and the best are kept). Returns the folder.
  std::filesystem::path publish(const std::filesystem::path& temporary, const Manifest& manifest);
  void discard(const std::filesystem::path& temporary) noexcept;

  struct Found {
    std::filesystem::path directory;
    Manifest manifest;
  };
  // The newest whole checkpoint (highest generation, then step); one that is damaged is passed over
  // with a warning that names it and the reason.
  std::optional<Found> newest() const;
  std::optional<Found> newest_after(uint64_t step) const;
  static Manifest read_manifest(const std::filesystem::path& directory);
  // Checks sizes and checksums of every file. Throws Invalid naming the file.
  static void verify(const Found& found);

  // Keeps a checkpoint from being pruned while it lives: a file "lease-<unique>" with an expiry that
  // is renewed; a lease of a dead reader lapses.
  class Lease;
  std::unique_ptr<Lease> lease(const Found& found, const std::string& reader);

  // Fills `values` (memory of `range` alone) with "<prefix><tensor>" for every tensor of the layout in
  // range, from whatever shards the checkpoint has. Throws Invalid naming the tensor that is missing
  // or has another shape.
  static void load(const Found& found, const compute::ParameterLayout& layout, compute::Range range,
                   std::span<float> values, const std::string& prefix);

 private:
  std::filesystem::path directory_;
  int keep_;
};

class Store::Lease {
 public:
  Lease(std::filesystem::path path, std::string reader);
  ~Lease();
  void renew();

 private:
  std::filesystem::path path_;
  std::string reader_;
};

// SHA-256 of the parameters (trainable, frozen, state; no slots, no padding) in manifest order: the
// layout's tensor order.
std::string weights_digest(const compute::ParameterLayout& layout, std::span<const float> parameters);

// model/model.safetensors, whole tensors, published by rename.
std::filesystem::path export_model(const std::filesystem::path& job_directory,
                                   const compute::ParameterLayout& layout,
                                   std::span<const float> parameters, const Json& training);

}  // namespace muster::checkpoint
