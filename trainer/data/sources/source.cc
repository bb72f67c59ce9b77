#include "trainer/data/sources/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"
#include "common/program/log.h"
#include "trainer/data/images/class_folders.h"
#include "trainer/data/images/class_notes.h"
#include "trainer/data/images/coco_images.h"
#include "trainer/data/images/csv_list.h"
#include "trainer/data/images/record_images.h"
#include "trainer/data/sources/idx_source.h"
#include "trainer/data/sources/image_dataset.h"
#include "trainer/data/sources/stored_dataset.h"
#include "trainer/data/sources/synthetic.h"
#include "trainer/data/sources/table_source.h"

namespace muster::data {
namespace {

// Returns where a source's samples are kept, by its field `cache`.
StorageKind storage_of(const spec::DataSource& source) {
  return source.cache ? StorageKind::memory : StorageKind::temporary_file;
}

std::unique_ptr<Dataset> stored(Samples samples) {
  return std::make_unique<StoredDataset>(std::move(samples));
}

// Opens the selected files of a list.
std::unique_ptr<Dataset> open_files(ImageList list, const std::string& name,
                                    const spec::ImageSettings& settings,
                                    const spec::DataSource& source) {
  const Selected selected = select(Selection::of(source), list.files.size(), name);
  const auto first = list.files.begin() + static_cast<std::ptrdiff_t>(selected.first);
  std::vector<ImageFile> files(first, first + static_cast<std::ptrdiff_t>(selected.count));
  auto corrupt = std::make_unique<CorruptSamples>(files.size(), settings.max_corrupt);
  return std::make_unique<ImageDataset>(
      std::make_unique<ImageFiles>(std::move(files)), settings,
      ImageLabels{compute::LabelKind::classes, list.label_count, std::move(list.classes)},
      source.cache, std::move(corrupt));
}

std::unique_ptr<Dataset> open_records(const spec::RecordSource& records, const RecordIndex& index,
                                      const std::vector<FilePart>& parts, bool in_memory) {
  RecordReader reader(records);
  std::vector<std::vector<int32_t>> labels;
  int64_t label_count = 0;
  std::vector<std::string> names;
  if (reader.labels() != nullptr) {
    names = reader.labels()->names_by_class(records.model_classes);
    label_count = static_cast<int64_t>(names.size());
  } else if (records.labels == compute::LabelKind::classes) {
    // The number of classes is that of all files, whatever part of them is used.
    labels = read_labels(index, reader);
    std::vector<bool> seen;
    for (const std::vector<int32_t>& file : labels) {
      for (const int32_t label : file) {
        seen.resize(std::max(seen.size(), static_cast<size_t>(label) + 1));
        seen[static_cast<size_t>(label)] = true;
      }
    }
    label_count = static_cast<int64_t>(seen.size());
    for (const std::string& note : notes_of_classes(seen, {}, records.name())) log::warning(note);
  }
  auto images = std::make_unique<RecordImages>(index, parts, std::move(reader), labels);
  std::vector<std::string> damage;  // damage in the files that are used
  for (size_t file = 0; file < index.files.size(); ++file)
    if (std::ranges::find(parts, file, &FilePart::file) != parts.end())
      damage.insert(damage.end(), index.damage[file].begin(), index.damage[file].end());
  auto corrupt =
      std::make_unique<CorruptSamples>(images->size() + damage.size(), records.images.max_corrupt);
  for (const std::string& one : damage) corrupt->add_unnumbered(one);
  return std::make_unique<ImageDataset>(std::move(images), records.images,
                                        ImageLabels{records.labels, label_count, std::move(names)},
                                        in_memory, std::move(corrupt));
}

std::unique_ptr<Dataset> open(const spec::IdxSource& idx, const spec::DataSource& source) {
  const IdxIndex index = read_idx_index(idx);
  return stored(read_idx_parts(idx, index, selected_parts(idx, index, Selection::of(source)),
                               storage_of(source)));
}
std::unique_ptr<Dataset> open(const spec::LinearSource& linear, const spec::DataSource& source) {
  return stored(make_linear(linear, Selection::of(source), storage_of(source)));
}
std::unique_ptr<Dataset> open(const spec::ClassesSource& classes, const spec::DataSource& source) {
  return stored(make_classes(classes, Selection::of(source), storage_of(source)));
}
std::unique_ptr<Dataset> open(const spec::ImageFolderSource& folder,
                              const spec::DataSource& source) {
  return open_files(list_class_folders(folder.path), folder.path.string(), folder.images, source);
}
std::unique_ptr<Dataset> open(const spec::ImageCsvSource& csv, const spec::DataSource& source) {
  return open_files(read_csv_list(csv), csv.file.string(), csv.images, source);
}

std::unique_ptr<Dataset> open(const spec::RecordSource& records, const spec::DataSource& source) {
  const RecordIndex index = read_record_index(records);
  return open_records(records, index,
                      selected_parts(index.samples(), Selection::of(source), records.name()),
                      source.cache);
}

std::unique_ptr<Dataset> open(const spec::CocoSource& coco, const spec::DataSource& source) {
  records::CocoAnnotations annotations = records::CocoAnnotations::read(coco.annotations);
  const Selected selected =
      select(Selection::of(source), annotations.images.size(), coco.annotations.string());
  std::vector<std::string> names = annotations.categories.names_by_class(coco.model_classes);
  const auto classes = static_cast<int64_t>(names.size());
  auto images = std::make_unique<CocoImages>(std::move(annotations), coco, selected);
  auto corrupt = std::make_unique<CorruptSamples>(images->size(), coco.images.max_corrupt);
  return std::make_unique<ImageDataset>(
      std::move(images), coco.images,
      ImageLabels{compute::LabelKind::objects, classes, std::move(names)}, source.cache,
      std::move(corrupt));
}

std::unique_ptr<Dataset> open(const spec::TableSource&, const spec::DataSource& source) {
  return stored(read_table(source, storage_of(source)));
}

// The files of a source, divided among replicas.
struct Dealt {
  Shards shards;
  std::vector<FilePart> held;
};

Dealt deal(const std::vector<FilePart>& parts, const Replicas& replicas, const BatchRule& rule) {
  const auto of = static_cast<size_t>(replicas.of);
  if (parts.size() < of) {
    throw Invalid(
        fmt::format("data.train.shard: file: expected at least {} files with samples, one "
                    "for each that computes a batch of a step, found {}",
                    of, parts.size()));
  }
  std::vector<uint64_t> sizes;
  for (const FilePart& part : parts) sizes.push_back(part.count);
  Dealt dealt{Shards::by_file(sizes, replicas, rule), {}};
  for (const Shards::Held& one : dealt.shards.held()) {
    for (size_t i = one.shard; i < parts.size(); i += of) dealt.held.push_back(parts[i]);
  }
  return dealt;
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const spec::DataSource& source) {
  return std::visit([&](const auto& kind) { return open(kind, source); }, source.kind);
}

TrainingData open_training_data(const spec::DataSource& source, const Replicas& replicas,
                                const BatchRule& rule) {
  if (source.shard == spec::ShardBy::record) {
    auto samples = open_dataset(source);
    samples->require_objects();  // by file, a replica's own files need not have objects
    const uint64_t size = samples->size();
    return {std::move(samples), Shards::by_record(size, rule)};
  }
  if (const auto* records = std::get_if<spec::RecordSource>(&source.kind)) {
    const RecordIndex index = read_record_index(*records);
    Dealt dealt = deal(selected_parts(index.samples(), Selection::of(source), records->name()),
                       replicas, rule);
    return {open_records(*records, index, dealt.held, source.cache), std::move(dealt.shards)};
  }
  if (const spec::TableSource* table = source.table()) {
    const TableIndex& index = read_table_index(source);
    Dealt dealt = deal(selected_parts(index.rows_of_files, Selection::of(source), table->name()),
                       replicas, rule);
    return {stored(read_table_parts(source, dealt.held, storage_of(source))),
            std::move(dealt.shards)};
  }
  const spec::IdxSource& idx = std::get<spec::IdxSource>(source.kind);  // the checks ensure it
  const IdxIndex index = read_idx_index(idx);
  Dealt dealt = deal(selected_parts(idx, index, Selection::of(source)), replicas, rule);
  return {stored(read_idx_parts(idx, index, dealt.held, storage_of(source))),
          std::move(dealt.shards)};
}

}  // namespace muster::data
