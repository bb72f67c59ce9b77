#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/documents/json.h"
#include "trainer/compute/loss.h"
#include "trainer/spec/augmentation.h"

namespace muster::spec {

// The source of samples, as the manifest describes it. Each kind of source has a struct in
// SourceKind. Only the functions below and trainer/data know the kinds.

// The paths are relative to the trainer's working directory; the files may be gzip or plain.
struct IdxFiles {
  std::filesystem::path images;
  std::filesystem::path labels;  // empty: no labels
};

// An IDX source. Samples are numbered through the files.
struct IdxSource {
  std::vector<IdxFiles> files;
  bool listed = false;  // whether the manifest has `files`, not images and labels
  float scale = 1.0f / 255.0f;
};

// y = slope x + intercept + noise n, with x and n from a unit normal.
struct LinearSource {
  int64_t samples = 0;
  double slope = 2, intercept = 10, noise = 0.33;
  uint64_t seed = 1;
};

// Gaussian blobs, one for each class.
struct ClassesSource {
  int64_t samples = 0;
  std::vector<int64_t> shape;  // shape of one sample
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
  double max_corrupt = 0.01;  // largest share of damaged samples

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
  std::filesystem::path folder;      // empty: the file's folder
  std::vector<std::string> classes;  // empty: labels are numbers
  ImageSettings images;
};

// TFRecord files of tf.train.Example.
struct RecordSource {
  std::vector<std::filesystem::path> files;  // files or patterns
  bool listed = false;                       // whether the manifest has fileList
  std::filesystem::path label_map;           // empty: none
  int64_t first_label = 1;                   // label of the first class, without a label map
  std::string image_key = "image/encoded";
  std::string label_key = "image/class/label";
  compute::LabelKind labels = compute::LabelKind::classes;  // or objects
  int64_t model_classes = 0;  // number of a detector's classes, for objects; 0: not known
  ImageSettings images;

  std::string name() const;  // for messages: "a-*.tfrecord", or of several "a and 2 more"
  // Returns the field of a file: "files", or "fileList[3]".
  std::string file_field(size_t file) const;
};

// COCO's annotations ("instances") and the folder of their images.
struct CocoSource {
  std::filesystem::path annotations;
  std::filesystem::path folder;
  ImageSettings images;
  int64_t model_classes = 0;  // number of the detector's classes; 0: not known
};

// How a file of a table is read.
struct TableFormat {
  std::string name;    // csv, parquet, arrow, numpy or tfrecord; empty: by the file's ending
  char separator = 0;  // 0: by the first line
  char decimal = '.';  // or ','
  bool header = true;  // whether the first line has the names of the columns
};

enum class Transform { standardize, min_max, log, none, buckets };
enum class Missing { mean, constant, flag };
// What the cells of a column are: numbers, categories, several categories each, several numbers
// each.
enum class FeatureKind { number, category, categories, vector };

// Columns that become features in the same way.
struct TableFeature {
  std::vector<std::string> columns;
  std::optional<FeatureKind> kind;  // nothing: as the first file has them
  std::string separator;            // of several in a text; empty: a space
  // Of numbers.
  std::optional<double> least, most;  // a number beyond them is replaced by them
  Transform transform = Transform::standardize;
  int64_t buckets = 10;  // of Transform::buckets
  Missing missing = Missing::mean;
  double constant = 0;
  // Of categories.
  int64_t most_values = 100;  // with an input of their own
  int64_t spare_values = 0;   // inputs for values that later training data bring
  int64_t hash_buckets = 0;   // 0: values have inputs of their own
  bool freeze = false;        // later training data bring no values
};

struct TableTarget {
  std::vector<std::string> columns;  // one, or several numbers
  bool is_class = true;              // false: numbers
  Transform transform = Transform::none;
};

// In which order the rows of all files are numbered.
enum class RowOrder {
  as_they_are,
  mixed,     // a random order, always the same
  by_value,  // by the rising values of a column, for example a time
  by_group,  // rows of the same value of a column beside each other, the values in a random order
};

struct DataSource;

// The rows of CSV, Parquet, Arrow or NumPy files.
struct TableSource {
  std::vector<std::filesystem::path> files;  // files or patterns
  bool listed = false;                       // whether the manifest has fileList
  TableFormat format;
  RowOrder order = RowOrder::as_they_are;
  std::string order_column;            // of by_value and by_group
  std::vector<TableFeature> features;  // empty: all columns but the target
  TableTarget target;
  std::string weight_column;  // of training data; empty: all rows weigh 1
  std::string group_column;   // of data for evaluation: in whose groups rows are ranked; or empty
  int64_t rank_at = 10;       // how many of a group's rows a ranking counts
  // Of data for evaluation: the training data, which decide the features, or what a model keeps of
  // them (data::Preparation). Null for the training data themselves.
  std::shared_ptr<const DataSource> trained_on;
  Json prepared;

  std::string name() const;  // for messages
  // Returns the field of a file: "files", or "fileList[3]".
  std::string file_field(size_t file) const;
};

using SourceKind = std::variant<IdxSource, LinearSource, ClassesSource, ImageFolderSource,
                                ImageCsvSource, RecordSource, CocoSource, TableSource>;

enum class SplitPart { first, rest };
// How samples are divided among a group: all replicas take batches from one order of all samples,
// or each replica has its own files.
enum class ShardBy { record, file };

struct DataSource {
  SourceKind kind;
  int64_t skip = 0;   // number of samples left out at the beginning
  int64_t take = -1;  // number of samples used after `skip`; -1: the rest
  // The part that is used of the n samples that skip and take leave: the first floor(fraction n)
  // samples, or the others.
  std::optional<double> split_fraction;
  SplitPart split_part = SplitPart::first;
  std::vector<StageKind> augment;   // train: the stages of a sample at each use, in order
  ShardBy shard = ShardBy::record;  // only for train
  bool shuffle = false;             // train: true by default
  bool cache = true;                // in memory; false: in a mapped temporary file
  int64_t prefetch = 0;             // samples read ahead if not all fit into memory; 0: automatic

  // Returns null for a source of another kind.
  const IdxSource* idx() const { return std::get_if<IdxSource>(&kind); }
  const TableSource* table() const { return std::get_if<TableSource>(&kind); }
  // Returns null for a source whose samples are not decoded from images.
  const ImageSettings* images() const;
};

// The known facts of a source's samples.
struct DataFacts {
  uint64_t samples = 0;  // samples of the source, before skip, take and split; 0: unknown
  std::vector<int64_t> sample_shape;  // {28, 28}
  // Number of classes (IDX: the largest label + 1), or of floats in a target; 0: unknown.
  int64_t label_count = 0;
  std::string largest_label;            // IDX: "label 9 of sample 4 of FILE"
  std::string malformed;                // why files cannot be read; if set, nothing else is known
  std::vector<std::string> classes;     // names of the classes, in order; empty: no names
  size_t files = 1;                     // number of files that `shard: file` divides
  std::vector<std::string> notes = {};  // remarks on the data that are not errors
  bool without_objects = false;         // labels are objects, and no sample has an object to learn
  // Labels are objects: the sizes, as metrics name them ("Small"), of which no sample has an
  // object.
  std::vector<std::string> sizes_without_objects = {};
};

// The manifest's words for a kind, and the fields at which a problem with the samples is reported.
struct SourceWords {
  const char* name;               // "idx"
  const char* shape;              // the field that decides the shape of a sample
  const char* labels;             // the field that decides the labels; "" for the source itself
  compute::LabelKind label_kind;  // for tfRecord: unless the manifest asks for objects
  const char* files;              // "IDX files"; "" for a source without files
};
// Returns the words of all kinds, in the order of SourceKind.
const std::vector<SourceWords>& source_words();
const SourceWords& words_of(const DataSource& source);

// Returns the facts that follow from the manifest alone; nothing if files decide all facts.
std::optional<DataFacts> facts_by_manifest(const DataSource& source);

// Returns the paths and patterns that the manifest names, in order.
std::vector<std::filesystem::path> paths_of(const DataSource& source);

// Gives data for evaluation the training data that decide their features, if both are tables.
void train_on(const DataSource& train, DataSource& source);

// Returns the source with its relative paths placed below `folder`.
DataSource below(const std::filesystem::path& folder, DataSource source);

// Returns the name of a file in messages about `idx`: "images", or "files[3].images" for a list.
std::string file_field(const IdxSource& source, size_t file, const char* field);

// Converts a checked value of the schema. `shuffle` is the default of the field shuffle.
DataSource to_source(const Json& source, bool shuffle);

}  // namespace muster::spec
