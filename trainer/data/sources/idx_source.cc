#include "trainer/data/sources/idx_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/error.h"
#include "trainer/data/files/source_file.h"

namespace muster::data {
namespace {

// Returns a name for messages about all files together.
std::string name_of(const spec::IdxSource& source) {
  const std::string first = source.files.front().images.string();
  const size_t more = source.files.size() - 1;
  return more == 0 ? first : fmt::format("{} and {} more files", first, more);
}

uint64_t elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), uint64_t{1},
                         [](uint64_t a, int64_t b) { return a * static_cast<uint64_t>(b); });
}

void read_pixels(const spec::IdxSource& source, const IdxIndex& index,
                 const std::vector<FilePart>& parts, StorageKind storage, Samples& samples) {
  const uint64_t sample_bytes = elements(index.shape);
  samples.features = Storage(samples.count * sample_bytes, storage);
  std::span<std::byte> rest = samples.features.bytes();
  for (const FilePart& part : parts) {
    const size_t bytes = part.count * sample_bytes;
    SourceFile file(source.files[part.file].images, kImages);
    read_idx_images(file.stream(), {index.samples[part.file], index.shape}, part.first,
                    rest.first(bytes));
    rest = rest.subspan(bytes);
  }
}

void read_labels(const spec::IdxSource& source, const IdxIndex& index,
                 const std::vector<FilePart>& parts, Samples& samples) {
  samples.labels.resize(samples.count);
  std::vector<std::span<int32_t>> wanted(source.files.size());
  std::vector<uint64_t> first(source.files.size());
  std::span<int32_t> rest = samples.labels;
  for (const FilePart& part : parts) {
    wanted[part.file] = rest.first(part.count);
    first[part.file] = part.first;
    rest = rest.subspan(part.count);
  }
  for (size_t file = 0; file < source.files.size(); ++file) {
    const IdxLabels labels = read_labels_of(source.files[file], index.samples[file]);
    samples.label_count = std::max<int64_t>(samples.label_count, labels.largest + 1);
    const auto begin = labels.labels.begin() + static_cast<int64_t>(first[file]);
    std::copy_n(begin, wanted[file].size(), wanted[file].begin());
  }
}

}  // namespace

uint64_t IdxIndex::total() const {
  return std::accumulate(samples.begin(), samples.end(), uint64_t{0});
}

IdxIndex read_idx_index(const spec::IdxSource& source) {
  IdxIndex index;
  for (const spec::IdxFiles& files : source.files) {
    IdxShape shape = read_idx_shape(SourceFile(files.images, kImages).stream());
    if (index.samples.empty())
      index.shape = std::move(shape.sample);
    else if (shape.sample != index.shape) {
      throw Invalid(fmt::format("{}: expected samples of [{}] as in {}, found [{}]",
                                files.images.string(), fmt::join(index.shape, ", "),
                                source.files.front().images.string(),
                                fmt::join(shape.sample, ", ")));
    }
    index.samples.push_back(shape.samples);
  }
  return index;
}

IdxLabels read_labels_of(const spec::IdxFiles& files, uint64_t images) {
  IdxLabels labels = read_idx_labels(SourceFile(files.labels, kLabels).stream());
  require_as_many(labels, files.labels.string(), images, files.images.string());
  return labels;
}

std::vector<FilePart> selected_parts(const spec::IdxSource& source, const IdxIndex& index,
                                     const Selection& selection) {
  return selected_parts(index.samples, selection, name_of(source));
}

Samples read_idx_parts(const spec::IdxSource& source, const IdxIndex& index,
                       const std::vector<FilePart>& parts, StorageKind storage) {
  Samples samples;
  const bool labelled = !source.files.front().labels.empty();
  for (const FilePart& part : parts) {
    const spec::IdxFiles& files = source.files[part.file];
    const std::string name = (labelled ? files.labels : files.images).string();
    samples.origins.push_back({samples.count, name, part.first});
    samples.count += part.count;
  }
  samples.shape = index.shape;
  samples.type = compute::ElementType::uint8;
  samples.scale = source.scale;
  read_pixels(source, index, parts, storage, samples);
  if (labelled) read_labels(source, index, parts, samples);
  return samples;
}

}  // namespace muster::data
