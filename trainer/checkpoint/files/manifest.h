#pragma once

#include <array>
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

// The position that training has reached, without the tensors.
struct Position {
  uint64_t step = 0;  // committed updates
  uint64_t epoch = 0;
  // Counts within the epoch: synchronously the group's batches; asynchronously the tickets that
  // were handed out and are done.
  uint64_t next_batch = 0;
  uint64_t optimizer_t = 0;
  std::vector<uint64_t> outstanding;  // async: tickets not done
  EpochSums sums;                     // sums of the training so far
  Evaluations evaluations;            // evaluations that may end the training
};

// The rows of a tensor in one file, if the file does not have the whole tensor.
struct Slice {
  std::string file;
  std::string tensor;
  std::vector<int64_t> shape;  // logical, whole
  int64_t first_row = 0;
};

// Says what has ended a training: its length (epochs or steps), or a rule about metrics.
enum class End { length, stop_when, early_stopping };
// The words for them in manifest.json, in the same order.
inline constexpr std::array<std::string_view, 3> kEndWords = {"length", "stopWhen",
                                                              "earlyStopping"};

struct Manifest {
  int version = 1;
  std::string job_uid;
  uint64_t generation = 0;
  Position position;
  std::optional<End> ended;  // set in a final checkpoint
  std::string model;         // ModelSpec::name
  std::string layout_fingerprint;
  std::string fingerprint;            // determinism: build, instruction set, precision, threads
  std::vector<uint64_t> shard_steps;  // async: the step of each shard
  std::vector<FileEntry> files;
  std::vector<Slice> slices;  // filled in by Store::publish from the files' own headers
  Json metrics;               // loss and so on at this step
  Json training;              // the training block with which it was made
  Json samples;  // format of the samples (data::SampleFormat); empty: from an earlier version
  // The newest request (MUSTER_CHECKPOINT_REQUEST) from before its state was copied; empty: none.
  std::string request;

  bool is_final() const { return ended.has_value(); }
};

// Returns the text of manifest.json: the fields above in camelCase, and last "crc32c", a checksum
// of the text before that field, so that a flipped bit in the manifest itself is detected too.
std::string to_text(const Manifest& manifest);

// Parses the text of manifest.json. Throws Invalid naming `source` and the field: for a text that
// is not JSON, another version, a wrong type, a wrong checksum, or a file name that leaves the
// folder.
Manifest parse_manifest(std::string_view text, const std::string& source);

// "ckpt-<step>-g<generation>": the name of a published folder.
struct FolderName {
  uint64_t step = 0;
  uint64_t generation = 0;
  std::string text() const;
  // Accepts only names in the form of text(); any other folder is not a checkpoint.
  static std::optional<FolderName> parse(std::string_view name);
  bool operator==(const FolderName&) const = default;
};

// Returns "model-00000-of-00002.safetensors"; kind is "model" or "optimizer".
std::string shard_file_name(std::string_view kind, int shard, int shards);

}  // namespace muster::checkpoint
