#include "trainer/data/sources/look.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/error.h"
#include "common/text/listed.h"
#include "trainer/data/files/source_file.h"
#include "trainer/data/images/box_report.h"
#include "trainer/data/images/class_folders.h"
#include "trainer/data/images/class_notes.h"
#include "trainer/data/images/csv_list.h"
#include "trainer/data/images/record_images.h"
#include "trainer/data/sources/idx_source.h"
#include "trainer/data/sources/table_source.h"
#include "trainer/detection/coco_evaluation.h"
#include "trainer/records/coco.h"
#include "trainer/records/file_pattern.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostMissingNamed = 5;
constexpr uint64_t kMostTried = 10;

spec::DataFacts read_facts(const spec::IdxSource& source) {
  spec::DataFacts facts;
  const IdxIndex index = read_idx_index(source);
  facts.samples = index.total();
  facts.sample_shape = index.shape;
  std::vector<bool> seen;
  for (size_t file = 0; file < source.files.size(); ++file) {
    const IdxLabels labels = read_labels_of(source.files[file], index.samples[file]);
    seen.resize(std::max<size_t>(seen.size(), static_cast<size_t>(labels.largest) + 1));
    for (const uint8_t label : labels.labels) seen[label] = true;
    if (labels.largest < facts.label_count) continue;
    facts.label_count = labels.largest + 1;
    const auto largest = std::ranges::max_element(labels.labels);
    facts.largest_label =
        fmt::format("label {} of sample {} of {}", labels.largest, largest - labels.labels.begin(),
                    source.files[file].labels.string());
  }
  facts.notes = notes_of_classes(seen, {}, source.files[0].labels.string());
  return facts;
}

spec::DataFacts read_facts(const spec::LinearSource&) {
  return {};
}
spec::DataFacts read_facts(const spec::ClassesSource&) {
  return {};
}

// Throws Invalid if more files are missing than may be damaged. Otherwise returns a note on the
// missing files, if there are any.
std::vector<std::string> require_files(const ImageList& list, const spec::ImageSettings& settings,
                                       const std::string& name) {
  std::vector<std::string> missing;
  uint64_t count = 0;
  for (const ImageFile& file : list.files) {
    std::error_code error;
    if (std::filesystem::is_regular_file(file.path, error)) continue;
    if (++count <= kMostMissingNamed) missing.push_back(file.path.string());
  }
  if (count == 0) return {};
  std::string found = fmt::format("{}: expected files for its {} images, found none for {}: {}{}",
                                  name, list.files.size(), count, fmt::join(missing, ", "),
                                  count > kMostMissingNamed ? " and others" : "");
  const double most = settings.max_corrupt * static_cast<double>(list.files.size());
  if (static_cast<double>(count) > most) throw Invalid(found);
  return {found + "; they are left out"};
}

// Returns notes on classes without a sample, and other remarks on a list.
std::vector<std::string> notes_of_list(const ImageList& list, const std::string& name) {
  std::vector<bool> seen(static_cast<size_t>(list.label_count));
  for (const ImageFile& file : list.files) seen[static_cast<size_t>(file.label)] = true;
  std::vector<std::string> notes = notes_of_classes(seen, list.classes, name);
  if (list.classes.size() == 1)
    notes.push_back(fmt::format("{}: \"{}\" is the only class, so that there is nothing to learn",
                                name, list.classes[0]));
  if (!list.passed_over.empty())
    notes.push_back(
        fmt::format("{}: files that are not used, because they have none of the "
                    "endings {} or are not in the folder of a class: {}",
                    name, kImageEndings, list.passed_over));
  return notes;
}

spec::DataFacts facts_of(ImageList list, const spec::ImageSettings& settings,
                         const std::string& name) {
  spec::DataFacts facts;
  facts.samples = list.files.size();
  facts.sample_shape = settings.shape();
  facts.label_count = list.label_count;
  facts.classes = std::move(list.classes);
  if (!facts.classes.empty()) {
    facts.largest_label = fmt::format("{} classes in {}", facts.classes.size(), name);
  } else {
    const auto largest = std::ranges::max_element(list.files, {}, &ImageFile::label);
    facts.largest_label =
        fmt::format("label {} of {} in {}", largest->label, largest->path.string(), name);
  }
  return facts;
}

// Reads the first records until one is an image with a class. If none is, throws the Invalid of the
// first record.
void require_one_readable(const RecordIndex& index, const RecordReader& reader) {
  std::string why;
  EncodedImage image;
  uint64_t tried = 0;
  for (size_t file = 0; file < index.files.size(); ++file) {
    const records::RecordFile records(index.files[file]);
    for (size_t i = 0; i < index.places[file].size(); ++i) {
      try {
        reader.read(records, index.places[file][i], i, image);
        return;
      } catch (const Invalid& error) {
        if (tried == 0) why = error.what();
      }
      if (++tried == kMostTried) throw Invalid(why);
    }
  }
  throw Invalid(why);
}

spec::DataFacts read_facts(const spec::ImageFolderSource& source) {
  ImageList list = list_class_folders(source.path);
  std::vector<std::string> notes = notes_of_list(list, source.path.string());
  spec::DataFacts facts = facts_of(std::move(list), source.images, source.path.string());
  facts.notes = std::move(notes);
  return facts;
}
spec::DataFacts read_facts(const spec::ImageCsvSource& source) {
  ImageList list = read_csv_list(source);
  std::vector<std::string> notes = require_files(list, source.images, source.file.string());
  std::ranges::move(notes_of_list(list, source.file.string()), std::back_inserter(notes));
  spec::DataFacts facts = facts_of(std::move(list), source.images, source.file.string());
  facts.notes = std::move(notes);
  return facts;
}

spec::DataFacts read_facts(const spec::RecordSource& source) {
  const RecordReader reader(source);
  const RecordIndex index = read_record_index(source);
  spec::DataFacts facts;
  for (const uint64_t samples : index.samples()) facts.samples += samples;
  std::vector<std::string> damage;
  for (const auto& file : index.damage) damage.insert(damage.end(), file.begin(), file.end());
  const double most =
      source.images.max_corrupt * static_cast<double>(facts.samples + damage.size());
  if (static_cast<double>(damage.size()) > most) throw Invalid(damage.front());
  require_one_readable(index, reader);
  facts.files = index.files.size();
  facts.sample_shape = source.images.shape();
  if (reader.labels() == nullptr) return facts;
  facts.classes = class_names(*reader.labels(), source.model_classes);
  facts.label_count = static_cast<int64_t>(reader.labels()->entries().size());
  facts.largest_label =
      fmt::format("{} classes in {}", facts.label_count, source.label_map.string());
  return facts;
}

// The sizes by which COCO's metrics group objects, and which of them are seen.
class SizesSeen {
 public:
  void add(const images::Box& box, const records::CocoImage& image) {
    const bool is_known = box.area > 0 || image.height > 0;
    if (!is_known) {  // it may be of any size
      small_ = medium_ = large_ = true;
      return;
    }
    const double area = area_of(box, image);
    const double least = area * (1 - kRounding), most = area * (1 + kRounding);
    small_ = small_ || least <= detection::kMostSmall;
    medium_ = medium_ || (most >= detection::kMostSmall && least <= detection::kMostMedium);
    large_ = large_ || most >= detection::kMostMedium;
  }
  std::vector<std::string> missing() const {
    std::vector<std::string> names;
    if (!small_) names.emplace_back("Small");
    if (!medium_) names.emplace_back("Medium");
    if (!large_) names.emplace_back("Large");
    return names;
  }

 private:
  static constexpr double kRounding = 1e-5;  // relative error of an area of floats

  // What reaches over the border of the image does not count.
  static double area_of(const images::Box& box, const records::CocoImage& image) {
    if (box.area > 0) return double(box.area);
    const auto inside = [](float from, float to) {
      return double(std::clamp(to, 0.0f, 1.0f)) - double(std::clamp(from, 0.0f, 1.0f));
    };
    return inside(box.ymin, box.ymax) * double(image.height) * inside(box.xmin, box.xmax) *
           double(image.width);
  }

  bool small_ = false, medium_ = false, large_ = false;
};

spec::DataFacts read_facts(const spec::CocoSource& source) {
  const records::CocoAnnotations annotations = records::CocoAnnotations::read(source.annotations);
  const std::string name = source.annotations.string();
  ImageList list;
  BoxReport report;
  report.add_file(annotations);
  std::vector<bool> seen(annotations.categories.entries().size());
  SizesSeen sizes;
  for (const records::CocoImage& image : annotations.images) {
    list.files.push_back({source.folder / image.file_name, 0});
    report.add(image.boxes, {});
    for (const images::Box& box : image.boxes) {
      if (box.crowd) continue;
      seen[annotations.categories.index_of(box.label).value()] = true;
      sizes.add(box, image);
    }
  }
  spec::DataFacts facts;
  facts.notes = require_files(list, source.images, name);
  if (const std::string text = report.text(); !text.empty())
    facts.notes.push_back(name + ": " + text);
  facts.without_objects = std::ranges::find(seen, true) == seen.end();
  facts.sizes_without_objects = sizes.missing();
  facts.samples = annotations.images.size();
  facts.sample_shape = source.images.shape();
  facts.classes = class_names(annotations.categories, source.model_classes);
  facts.label_count = static_cast<int64_t>(seen.size());
  facts.largest_label = fmt::format("{} categories in {}", facts.label_count, name);
  std::vector<std::string> names;
  for (const auto& entry : annotations.categories.entries()) names.push_back(entry.name);
  std::ranges::move(notes_of_classes(seen, names, name), std::back_inserter(facts.notes));
  if (!annotations.categories_left_out.empty())
    facts.notes.push_back(
        fmt::format("{}: the categories {} are the supercategories of others or have the name of "
                    "others; they are no classes of their own",
                    name, listed(annotations.categories_left_out, kMostMissingNamed)));
  return facts;
}

spec::DataFacts read_facts(const spec::TableSource&, const spec::DataSource& source) {
  return read_table_index(source).facts;
}

bool is_synthetic(const spec::DataSource& source) {
  return *spec::words_of(source).files == 0;
}

// The files and folders that cannot be opened.
struct Unreadable {
  std::vector<UnreadableFile> files;

  void open_file(const std::string& field, const fs::path& path, const char* what) {
    try {
      SourceFile file(path, what);
    } catch (const Invalid& error) {
      std::error_code ignored;
      const fs::file_status status = fs::status(path, ignored);
      files.push_back({field, error.what(), fs::exists(status) && !fs::is_regular_file(status)});
    }
  }
  void open_folder(const std::string& field, const fs::path& path) {
    std::error_code error, ignored;
    const fs::directory_iterator folder(path, error);
    if (!error) return;
    const fs::file_status status = fs::status(path, ignored);
    const bool is_other = fs::exists(status) && !fs::is_directory(status);
    files.push_back({field,
                     fmt::format("{}: expected a folder, found {}", path.string(),
                                 is_other                                        ? "a file"
                                 : error == std::errc::no_such_file_or_directory ? "none"
                                                                                 : error.message()),
                     is_other});
  }
};

void check_paths(const spec::LinearSource&, Unreadable&) {}
void check_paths(const spec::ClassesSource&, Unreadable&) {}
void check_paths(const spec::IdxSource& source, Unreadable& found) {
  for (size_t i = 0; i < source.files.size(); ++i) {
    found.open_file(spec::file_field(source, i, "images"), source.files[i].images, kImages);
    found.open_file(spec::file_field(source, i, "labels"), source.files[i].labels, kLabels);
  }
}
void check_paths(const spec::ImageFolderSource& source, Unreadable& found) {
  found.open_folder("path", source.path);
}
void check_paths(const spec::ImageCsvSource& source, Unreadable& found) {
  found.open_file("file", source.file, "a list of images");
  if (!source.folder.empty()) found.open_folder("folder", source.folder);
}
void check_paths(const spec::CocoSource& source, Unreadable& found) {
  found.open_file("annotations", source.annotations, "COCO annotations");
  found.open_folder("folder", source.folder);
}
// Checks a source with files or patterns.
template <typename Source>
void check_patterns(const Source& source, const char* what, Unreadable& found) {
  for (size_t i = 0; i < source.files.size(); ++i) {
    const std::string field = source.file_field(i);
    try {
      for (const fs::path& file : records::expand(source.files[i].string()))
        found.open_file(field, file, what);
    } catch (const Invalid& error) {
      found.files.push_back({field, error.what()});
    }
  }
}
void check_paths(const spec::TableSource& source, Unreadable& found) {
  check_patterns(source, "a table", found);
}
void check_paths(const spec::RecordSource& source, Unreadable& found) {
  check_patterns(source, "TFRecords", found);
  if (!source.label_map.empty()) found.open_file("labelMap", source.label_map, "a label map");
}

}  // namespace

std::optional<spec::DataFacts> look_at(const spec::DataSource& source) {
  if (is_synthetic(source)) return std::nullopt;
  const std::vector<UnreadableFile> unreadable = unreadable_files(source);
  const auto other = std::ranges::find(unreadable, true, &UnreadableFile::is_other_kind);
  if (other == unreadable.end() && !unreadable.empty()) return std::nullopt;
  spec::DataFacts facts;
  try {
    if (other != unreadable.end()) throw Invalid(other->why);
    facts = std::visit(
        [&](const auto& kind) {
          // What a table's columns become follows from the selected rows.
          if constexpr (requires { read_facts(kind, source); })
            return read_facts(kind, source);
          else
            return read_facts(kind);
        },
        source.kind);
  } catch (const Invalid& error) {
    facts.malformed = error.what();
  }
  return facts;
}

std::vector<UnreadableFile> unreadable_files(const spec::DataSource& source) {
  Unreadable found;
  std::visit([&](const auto& kind) { check_paths(kind, found); }, source.kind);
  return std::move(found.files);
}

void read_through(const spec::DataSource& source) {
  const spec::IdxSource* idx = source.idx();
  if (idx == nullptr) return;
  for (const spec::IdxFiles& files : idx->files) {
    skip_idx_images(SourceFile(files.images, kImages).stream());
    read_idx_labels(SourceFile(files.labels, kLabels).stream());
  }
}

}  // namespace muster::data
