#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/documents/json.h"
#include "trainer/compute/loss.h"
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

// The fields of all sources whose samples are decoded from JPEG and PNG.
struct ImageSettings {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 3;  // or 1
  float scale = 1.0f / 255.0f;
  float offset = 0.0f;
  double max_corrupt = 0.01;  // a share of the samples

  std::vector<int64_t> shape() const { return {height, width, channels}; }
};

// A folder for each class.
struct ImageFolderSource {
  std::filesystem::path path;
  ImageSettings images;
};

// A list of files with their labels.
struct ImageCsvSource {
  std::filesystem::path file;
  std::filesystem::path folder;      // empty: that of the file
  std::vector<std::string> classes;  // empty: labels are numbers
  ImageSettings images;
};

// TFRecord files of tf.train.Example.
struct RecordSource {
  std::vector<std::filesystem::path> files;  // or patterns
  bool listed = false;                       // in the manifest: as fileList
  std::filesystem::path label_map;           // empty: none
  int64_t first_label = 1;                   // of the first class, without a label map
  std::string image_key = "image/encoded";
  std::string label_key = "image/class/label";
  compute::LabelKind labels = compute::LabelKind::classes;  // or objects
  int64_t model_classes = 0;  // a detector's, for objects; 0: not known
  ImageSettings images;

  std::string name() const;  // for messages: "a-*.tfrecord", or with others "a and 2 more"
  // Returns the field of a file: "files", or "fileList[3]".
  std::string file_field(size_t file) const;
};

// COCO's annotations ("instances") and the folder of their images.
struct CocoSource {
  std::filesystem::path annotations;
  std::filesystem::path folder;
  ImageSettings images;
  int64_t model_classes = 0;  // a detector's; 0: not known
};

using SourceKind = std::variant<IdxSource, LinearSource, ClassesSource, ImageFolderSource,
                                ImageCsvSource, RecordSource, CocoSource>;

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
  // Returns null for a source whose samples are not decoded from images.
  const ImageSettings* images() const;
};

// The known facts of a source's samples.
struct DataFacts {
  uint64_t samples = 0;               // in the source, before skip, take and split; 0: unknown
  std::vector<int64_t> sample_shape;  // {28, 28}
  int64_t label_count = 0;    // classes (IDX: the largest label + 1), or floats of a target; of
                              // objects: classes; 0: unknown
  std::string largest_label;  // IDX: "label 9 of sample 4 of FILE"
  std::string malformed;      // why files cannot be read; then nothing else is known
  std::vector<std::string> classes;     // their names, in order; empty: they have none
  size_t files = 1;                     // that `shard: file` can share out
  std::vector<std::string> notes = {};  // what is worth knowing of them and no error
  bool without_objects = false;         // samples have objects, and none of them has one to learn
};

// The manifest's words for a kind, and the fields that a problem with the samples is reported at.
struct SourceWords {
  const char* name;    // "idx"
  const char* shape;   // the field that decides the shape of a sample
  const char* labels;  // the field that decides which labels there are; "" for the source itself
  compute::LabelKind label_kind;  // of tfRecord: unless the manifest asks for objects
  const char* files;              // "IDX files"; "" for a source without files
};
// Returns the words of all kinds, in the order of SourceKind.
const std::vector<SourceWords>& source_words();
const SourceWords& words_of(const DataSource& source);

// Returns the facts that the manifest alone gives; nothing if files decide all of them.
std::optional<DataFacts> facts_by_manifest(const DataSource& source);

// Returns the paths and patterns that the manifest names, in order.
std::vector<std::filesystem::path> paths_of(const DataSource& source);

// Returns the source with its relative paths placed below `folder`.
DataSource below(const std::filesystem::path& folder, DataSource source);

// Returns the name of a file in messages about `idx`: "images", or "files[3].images" for a list.
std::string file_field(const IdxSource& source, size_t file, const char* field);

// Converts a checked value of the schema. `shuffle` is the default for that field.
DataSource to_source(const Json& source, bool shuffle);

}  // namespace muster::spec
