#include "trainer/data/look.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"
#include "trainer/data/idx_source.h"
#include "trainer/data/source_file.h"

namespace muster::data {
namespace {

spec::DataFacts read_facts(const spec::IdxSource& source) {
  spec::DataFacts facts;
  const IdxIndex index = read_idx_index(source);
  facts.samples = index.total();
  facts.sample_shape = index.shape;
  for (size_t file = 0; file < source.files.size(); ++file) {
    const IdxLabels labels = read_labels_of(source.files[file], index.samples[file]);
    if (labels.largest < facts.label_count) continue;
    facts.label_count = labels.largest + 1;
    const auto largest = std::ranges::max_element(labels.labels);
    facts.largest_label =
        fmt::format("label {} of sample {} of {}", labels.largest, largest - labels.labels.begin(),
                    source.files[file].labels.string());
  }
  return facts;
}

}  // namespace

std::optional<spec::DataFacts> look_at(const spec::DataSource& source) {
  const spec::IdxSource* idx = source.idx();
  if (idx == nullptr || !unreadable_files(source).empty()) return std::nullopt;
  try {
    return read_facts(*idx);
  } catch (const Invalid& error) {
    spec::DataFacts facts;
    facts.malformed = error.what();
    return facts;
  }
}

std::vector<UnreadableFile> unreadable_files(const spec::DataSource& source) {
  std::vector<UnreadableFile> files;
  const spec::IdxSource* idx = source.idx();
  if (idx == nullptr) return files;
  const auto open = [&](size_t i, const char* field, const std::filesystem::path& path,
                        const char* what) {
    try {
      SourceFile file(path, what);
    } catch (const Invalid& error) {
      files.push_back({spec::file_field(*idx, i, field), error.what()});
    }
  };
  for (size_t i = 0; i < idx->files.size(); ++i) {
    open(i, "images", idx->files[i].images, kImages);
    open(i, "labels", idx->files[i].labels, kLabels);
  }
  return files;
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
