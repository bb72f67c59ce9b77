#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/documents/document.h"
#include "trainer/checkpoint/files/epoch_sums.h"
#include "trainer/checkpoint/files/evaluations.h"
#include "trainer/checkpoint/files/safetensors.h"

namespace muster::checkpoint {

// The point that training has reached, without the tensors.
struct Position {
  uint64_t step = 0;  // committed updates
  uint64_t epoch = 0;
  uint64_t next_batch = 0;  // in the epoch: sync: group batches; async: tickets handed out and done
  uint64_t optimizer_t = 0;
  std::vector<uint64_t> outstanding;  // async: tickets not done
  EpochSums sums;                     // of the training so far
  Evaluations evaluations;            // by which the training may end
};

// The rows of a tensor that lie in one file, if that is not the whole tensor.
struct Slice {
  std::string file;
  std::string tensor;
  std::vector<int64_t> shape;  // logical, whole
  int64_t first_row = 0;
};

// What has ended a training: its length (epochs or steps), or a rule that goes by metrics.
enum class End { length, stop_when, early_stopping };

struct Manifest {
  int version = 1;
  std::string job_uid;
  uint64_t generation = 0;
  Position position;
  std::optional<End> ended;  // of a final checkpoint
  std::string model;         // ModelSpec::name
  std::string layout_fingerprint;
  std::string fingerprint;            // determinism: build, instruction set, precision, threads
  std::vector<uint64_t> shard_steps;  // async: each shard's own
  std::vector<FileEntry> files;
  std::vector<Slice> slices;  // filled in by Store::publish from the files' own headers
  Json metrics;               // loss and so on at this step
  Json training;              // the training spec it was made with
  Json samples;  // the format of the samples (data::SampleFormat); empty: an earlier version's
  std::string request;  // the newest request (MUSTER_CHECKPOINT_REQUEST) that had been made before
                        // its state was taken; empty: none

  bool is_final() const { return ended.has_value(); }
};

// Returns the text of manifest.json: the fields above in camelCase, and last "crc32c", a checksum
// of the text before that field, so that a flipped bit in the manifest itself is detected too.
std::string to_text(const Manifest& manifest);

// Parses the text of manifest.json. Throws Invalid naming `source` and the field: no JSON, another
// version, a wrong type, a checksum that does not match, a file name that leaves the folder.
Manifest parse_manifest(std::string_view text, const std::string& source);

// "ckpt-<step>-g<generation>": the name of a published folder.
struct FolderName {
  uint64_t step = 0;
  uint64_t generation = 0;
  std::string text() const;
  // Accepts only names that text() writes; any other folder is no checkpoint.
  static std::optional<FolderName> parse(std::string_view name);
  bool operator==(const FolderName&) const = default;
};

// Returns "model-00000-of-00002.safetensors"; kind is "model" or "optimizer".
std::string shard_file_name(std::string_view kind, int shard, int shards);

}  // namespace muster::checkpoint
