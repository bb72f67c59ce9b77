#include "trainer/data/images/record_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "common/error.h"
#include "trainer/data/images/fit_boxes.h"
#include "trainer/records/example.h"
#include "trainer/records/file_pattern.h"

namespace muster::data {

namespace {

constexpr int64_t kMostRecordClasses = 65536;

}  // namespace

std::vector<uint64_t> RecordIndex::samples() const {
  std::vector<uint64_t> counts;
  for (const auto& file : places) counts.push_back(file.size());
  return counts;
}

RecordIndex read_record_index(const spec::RecordSource& source) {
  RecordIndex index;
  std::set<std::filesystem::path> seen;
  for (const std::filesystem::path& pattern : source.files) {
    for (std::filesystem::path& file : records::expand(pattern.string())) {
      if (!seen.insert(file).second)
        throw Invalid(fmt::format("{}: expected each file once, found it again by {}",
                                  file.string(), pattern.string()));
      index.files.push_back(std::move(file));
    }
  }
  for (const std::filesystem::path& file : index.files) {
    std::vector<std::string>& damage = index.damage.emplace_back();
    index.places.push_back(records::RecordFile(file).index(
        [&](const std::string& message) { damage.push_back(message); }));
    // Otherwise a completely missing shard would count only as a little damage.
    if (index.places.back().empty() && !damage.empty()) throw Invalid(damage.front());
  }
  if (std::ranges::any_of(index.places, [](const auto& places) { return !places.empty(); }))
    return index;
  throw Invalid(fmt::format("{}: expected at least one record, found none", source.name()));
}

RecordReader::RecordReader(const spec::RecordSource& source)
    : source_(source), has_labels_(!source.label_map.empty()) {
  if (has_labels_) labels_ = records::LabelMap::read(source.label_map);
}

void RecordReader::read(const records::RecordFile& file, const records::Place& place,
                        uint64_t number, EncodedImage& image) const {
  std::string bytes;
  file.read(place, number, bytes);
  const images::Name name = [&] { return records::name_of(file.path(), number, place.offset); };
  if (source_.labels == compute::LabelKind::objects)
    read_objects(bytes, name, image);
  else
    read_class(bytes, name, image);
}

void RecordReader::read_class(const std::string& bytes, const images::Name& name,
                              EncodedImage& image) const {
  records::ClassificationExample example;
  records::ExampleReader().read(bytes, name, example, {source_.image_key, source_.label_key});
  image.bytes = std::move(example.image);
  const auto fail = [&](const std::string& expected) {
    throw Invalid(fmt::format("{}: {}: expected {}, found {}", name, source_.label_key, expected,
                              example.label));
  };
  if (has_labels_) {
    const bool fits = example.label <= std::numeric_limits<int32_t>::max();
    const auto place_in_map =
        fits ? labels_.index_of(static_cast<int32_t>(example.label)) : std::optional<size_t>();
    if (!place_in_map) fail("an id of " + source_.label_map.string());
    image.label = static_cast<int32_t>(*place_in_map);
    return;
  }
  const int64_t label = example.label - source_.first_label;
  if (label < 0 || label >= kMostRecordClasses) {
    fail(fmt::format("a label from {} to {}", source_.first_label,
                     source_.first_label + kMostRecordClasses - 1));
  }
  image.label = static_cast<int32_t>(label);
}

void RecordReader::read_objects(const std::string& bytes, const images::Name& name,
                                EncodedImage& image) const {
  records::DetectionExample example;
  records::ExampleReader().read(bytes, name, labels(), example);
  image.bytes = std::move(example.image);
  image.boxes = std::move(example.boxes);
  image.problems = example.problems;
  image.oddity.clear();
  for (images::Box& box : image.boxes) {
    if (!has_labels_ && source_.model_classes > 0 && box.label > source_.model_classes) {
      throw Invalid(fmt::format(
          "{}: image/object/class/label: expected a label from 1 to {}, the model's classes, "
          "found {}",
          name, source_.model_classes, box.label));
    }
    // The reader has compared labels with the map.
    box.label = has_labels_ ? labels_.class_of(box.label, source_.model_classes) : box.label - 1;
  }
  fit_boxes(example.height, example.width, name, image);
}

std::vector<std::string> class_names(const records::LabelMap& labels, int64_t model_classes) {
  std::vector<std::string> names;
  for (const records::LabelMap::Entry& entry : labels.entries()) {
    const auto place = static_cast<size_t>(labels.class_of(entry.id, model_classes));
    while (names.size() < place) names.push_back(fmt::format("no id {}", names.size() + 1));
    names.push_back(entry.name);
  }
  return names;
}

RecordImages::RecordImages(const RecordIndex& index, const std::vector<FilePart>& parts,
                           RecordReader reader, const std::vector<std::vector<int32_t>>& labels)
    : files_(index.files), reader_(std::move(reader)) {
  for (const FilePart& part : parts) {
    for (uint64_t i = part.first; i < part.first + part.count; ++i) {
      records_.push_back({part.file, i, index.places[part.file][i]});
      if (!labels.empty()) labels_.push_back(labels[part.file][i]);
    }
  }
}

std::optional<int32_t> RecordImages::known_label(uint64_t image) const {
  return labels_.empty() ? std::nullopt : std::optional(labels_[image]);
}

std::string RecordImages::name(uint64_t image) const {
  const Record& record = records_[image];
  return records::name_of(files_.path(record.file), record.number, record.place.offset);
}

void RecordImages::read(uint64_t image, EncodedImage& to) const {
  const Record& record = records_[image];
  reader_.read(*files_.open(record.file), record.place, record.number, to);
}

std::vector<std::vector<int32_t>> read_labels(const RecordIndex& index,
                                              const RecordReader& reader) {
  std::vector<std::vector<int32_t>> labels;
  EncodedImage image;
  for (size_t file = 0; file < index.files.size(); ++file) {
    const records::RecordFile records(index.files[file]);
    labels.emplace_back(index.places[file].size(), 0);
    for (size_t i = 0; i < index.places[file].size(); ++i) {
      try {
        reader.read(records, index.places[file][i], i, image);
        labels.back()[i] = image.label;
      } catch (const Invalid&) {
        // The damaged record is counted and named when it is used.
      }
    }
  }
  return labels;
}

}  // namespace muster::data
