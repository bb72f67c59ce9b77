#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/json.h"
#include "trainer/spec/augmentation.h"

namespace muster::spec {

// The source of samples, as the manifest describes it. A kind of source is a struct of SourceKind;
// all other knowledge of it is in the functions below and in trainer/data.

// The paths are relative to the trainer's working directory; the files may be gzip or plain.
struct IdxFiles {
  std::filesystem::path images;
  std::filesystem::path labels;  // empty: there are none
};

// An IDX source. Its samples are numbered through the files.
struct IdxSource {
  std::vector<IdxFiles> files;
  bool listed = false;  // in the manifest: as a list, not as images and labels
  float scale = 1.0f / 255.0f;
};

// y = slope x + intercept + noise n, with x and n from a unit normal.
struct LinearSource {
  int64_t samples = 0;
  double slope = 2, intercept = 10, noise = 0.33;
  uint64_t seed = 1;
};

// Gaussian blobs, one a class.
struct ClassesSource {
  int64_t samples = 0;
  std::vector<int64_t> shape;  // of one sample
  int64_t classes = 0;
  double density = 1.0;  // share of features that are not zero
  uint64_t seed = 1;
};

using SourceKind = std::variant<IdxSource, LinearSource, ClassesSource>;

enum class SplitPart { first, rest };
// The distribution of samples over a group: all replicas take batches of one order of all samples,
// or each replica has files of its own.
enum class ShardBy { record, file };

struct DataSource {
  SourceKind kind;
  int64_t skip = 0;                         // first samples left out, then
  int64_t take = -1;                        // how many are used; -1: the rest
  std::optional<double> split_fraction;     // of what skip and take leave, n samples: the first
  SplitPart split_part = SplitPart::first;  // floor(fraction n), or those after them
  std::vector<StageKind> augment;           // train: what is done to a sample at each use, in order
  ShardBy shard = ShardBy::record;          // train
  bool shuffle = false;                     // train: true by default
  bool cache = true;                        // in memory; else in a mapped temporary file
  int64_t prefetch = 0;  // samples read ahead if not all fit; 0: the trainer chooses

  // Returns null for a source of another kind.
  const IdxSource* idx() const { return std::get_if<IdxSource>(&kind); }
};

// The known facts of a source's samples.
struct DataFacts {
  uint64_t samples = 0;               // in the source, before skip, take and split
  std::vector<int64_t> sample_shape;  // {28, 28}
  int64_t label_count = 0;            // classes (IDX: the largest label + 1), or floats of a target
  std::string largest_label;          // IDX: "label 9 of sample 4 of FILE"
  std::string malformed;              // why files cannot be read; then nothing else is known
};

// The manifest's words for a kind, and the fields that a problem with the samples is reported at.
struct SourceWords {
  const char* name;    // "idx"
  const char* shape;   // the field that decides the shape of a sample
  const char* labels;  // the field that decides which labels there are; "" for the source itself
  bool has_classes;    // else numbers
};
// Returns the words of all kinds, in the order of SourceKind.
const std::vector<SourceWords>& source_words();
const SourceWords& words_of(const DataSource& source);

// Returns the facts that the manifest alone gives; nothing if files decide.
std::optional<DataFacts> facts_by_manifest(const DataSource& source);

inline constexpr const char* kIdxImages = "IDX images";
inline constexpr const char* kIdxLabels = "IDX labels";

// A file that a source reads, as the manifest names it.
struct NamedFile {
  std::string field;    // of the source's object: "images", "files[3].images"
  const char* content;  // expected in it: "IDX images"
  std::filesystem::path path;
};
// Returns the files of a source; none for a synthetic one.
std::vector<NamedFile> files_of(const DataSource& source);

// Returns the source with its relative paths placed below `folder`.
DataSource below(const std::filesystem::path& folder, DataSource source);

// Converts a checked value of the schema. `shuffle` is the default for that field.
DataSource to_source(const Json& source, bool shuffle);

}  // namespace muster::spec
