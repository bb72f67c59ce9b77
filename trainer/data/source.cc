#include <fmt/format.h>

#include "common/error.h"
#include "trainer/data/dataset.h"
#include "trainer/data/idx_source.h"
#include "trainer/data/memory_dataset.h"
#include "trainer/data/synthetic.h"

namespace muster::data {
namespace {

Samples read(const spec::IdxSource& idx, const Selection& selection, StorageKind storage) {
  const IdxIndex index = read_idx_index(idx);
  return read_idx_parts(idx, index, selected_parts(idx, index, selection), storage);
}
Samples read(const spec::LinearSource& linear, const Selection& selection, StorageKind storage) {
  return make_linear(linear, selection, storage);
}
Samples read(const spec::ClassesSource& classes, const Selection& selection, StorageKind storage) {
  return make_classes(classes, selection, storage);
}

// Returns where a source's samples are kept, by its field `cache`.
StorageKind storage_of(const spec::DataSource& source) {
  return source.cache ? StorageKind::memory : StorageKind::temporary_file;
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const spec::DataSource& source) {
  return std::make_unique<MemoryDataset>(std::visit(
      [&](const auto& kind) { return read(kind, Selection::of(source), storage_of(source)); },
      source.kind));
}

TrainingData open_training_data(const spec::DataSource& source, const Replicas& replicas,
                                const BatchRule& rule) {
  if (source.shard == spec::ShardBy::record) {
    auto samples = open_dataset(source);
    const uint64_t size = samples->size();
    return {std::move(samples), Shards::by_record(size, rule)};
  }
  const spec::IdxSource& idx = std::get<spec::IdxSource>(source.kind);  // the checks ensure it
  const IdxIndex index = read_idx_index(idx);
  const std::vector<FilePart> parts = selected_parts(idx, index, Selection::of(source));
  const auto of = static_cast<size_t>(replicas.of);
  if (parts.size() < of) {
    throw Invalid(
        fmt::format("data.train.shard: file: expected at least {} files with samples, one "
                    "for each that computes a batch of a step, found {}",
                    of, parts.size()));
  }
  std::vector<uint64_t> sizes;
  for (const FilePart& part : parts) sizes.push_back(part.count);
  Shards shards = Shards::by_file(sizes, replicas, rule);
  std::vector<FilePart> held;
  for (const Shards::Held& one : shards.held()) {
    for (size_t i = one.shard; i < parts.size(); i += of) held.push_back(parts[i]);
  }
  return {std::make_unique<MemoryDataset>(read_idx_parts(idx, index, held, storage_of(source))),
          std::move(shards)};
}

void require_labels_below(const Dataset& dataset, int64_t classes) {
  if (!dataset.has_labels()) return;
  for (uint64_t i = 0; i < dataset.size(); ++i) {
    const int32_t label = dataset.label(i);
    if (label < 0 || label >= classes) {
      throw Invalid(fmt::format("label {} of {} is out of range for {} classes (0 to {})", label,
                                dataset.describe(i), classes, classes - 1));
    }
  }
}

}  // namespace muster::data
