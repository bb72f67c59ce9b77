#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/files/file_parts.h"
#include "trainer/data/images/image_set.h"
#include "trainer/images/name.h"
#include "trainer/records/label_map.h"
#include "trainer/records/record_files.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// The records of a tfRecord source, by file.
struct RecordIndex {
  std::vector<std::filesystem::path> files;
  std::vector<std::vector<records::Place>> places;  // places of the records, by file
  std::vector<std::vector<std::string>> damage;     // by file: the places without a whole record

  std::vector<uint64_t> samples() const;  // number of records by file
};

// Reads the headers of all records. Throws Invalid for a pattern without files, like
// records::expand, and if there is no record.
RecordIndex read_record_index(const spec::RecordSource& source);

// Reads a record of a tfRecord source as an image with a class or with objects. Thread-safe.
class RecordReader {
 public:
  // Reads the label map, if there is one. Throws Invalid as records::LabelMap does.
  explicit RecordReader(const spec::RecordSource& source);

  // Returns null without a label map.
  const records::LabelMap* labels() const { return has_labels_ ? &labels_ : nullptr; }
  // Throws Invalid, naming file and record, for a damaged record, for a record that is not such an
  // example, and for a bad label: a label that is not in the label map or, without a label map, is
  // not below the model's number of classes.
  void read(const records::RecordFile& file, const records::Place& place, uint64_t number,
            EncodedImage& image) const;

 private:
  void read_class(const std::string& bytes, const images::Name& name, EncodedImage& image) const;
  void read_objects(const std::string& bytes, const images::Name& name, EncodedImage& image) const;

  spec::RecordSource source_;
  records::LabelMap labels_;
  bool has_labels_;
};

// Returns the names that identify a label map's classes by class, as LabelMap::class_of() numbers
// them: two maps with the same names there number them alike. A class without an id is called "no
// id 7". Those for people are LabelMap::names_by_class().
std::vector<std::string> class_names(const records::LabelMap& labels, int64_t model_classes);

// Images in records.
class RecordImages : public ImageSet {
 public:
  // `labels` are the labels of all records, by file; empty if they are not known before reading.
  RecordImages(const RecordIndex& index, const std::vector<FilePart>& parts, RecordReader reader,
               const std::vector<std::vector<int32_t>>& labels);

  uint64_t size() const override { return records_.size(); }
  std::optional<int32_t> known_label(uint64_t image) const override;
  std::string name(uint64_t image) const override;
  uint64_t most_bytes(uint64_t image) const override { return records_[image].place.length; }
  std::string box_hint() const override {
    return "; the boxes of a tf.train.Example are fractions of its image, from 0 to 1";
  }
  void read(uint64_t image, EncodedImage& to) const override;

 private:
  struct Record {
    size_t file;
    uint64_t number;  // number within the file
    records::Place place;
  };

  const records::RecordFiles files_;
  const RecordReader reader_;
  std::vector<Record> records_;
  std::vector<int32_t> labels_;
};

// Reads the labels of all records, by file. A record that cannot be read has the label 0.
std::vector<std::vector<int32_t>> read_labels(const RecordIndex& index, const RecordReader& reader);

}  // namespace muster::data
