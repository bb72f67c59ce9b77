#include "trainer/data/look.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"
#include "trainer/data/idx_source.h"
#include "trainer/data/source_file.h"

namespace muster::data {
namespace {

// Each kind of source has these functions: read_facts() and read_all(), which do for it what
// look_at() and read_through() say.

std::optional<spec::DataFacts> read_facts(const spec::IdxSource& source) {
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

std::optional<spec::DataFacts> read_facts(const spec::LinearSource&) {
  return std::nullopt;
}
std::optional<spec::DataFacts> read_facts(const spec::ClassesSource&) {
  return std::nullopt;
}

void read_all(const spec::IdxSource& source) {
  for (const spec::IdxFiles& files : source.files) {
    skip_idx_images(SourceFile(files.images, spec::kIdxImages).stream());
    read_idx_labels(SourceFile(files.labels, spec::kIdxLabels).stream());
  }
}
void read_all(const spec::LinearSource&) {}
void read_all(const spec::ClassesSource&) {}

}  // namespace

std::optional<spec::DataFacts> look_at(const spec::DataSource& source) {
  if (!unreadable_files(source).empty()) return std::nullopt;
  try {
    return std::visit([](const auto& kind) { return read_facts(kind); }, source.kind);
  } catch (const Invalid& error) {
    spec::DataFacts facts;
    facts.malformed = error.what();
    return facts;
  }
}

std::vector<UnreadableFile> unreadable_files(const spec::DataSource& source) {
  std::vector<UnreadableFile> files;
  for (const spec::NamedFile& file : spec::files_of(source)) {
    try {
      SourceFile(file.path, file.content);
    } catch (const Invalid& error) {
      files.push_back({file.field, error.what()});
    }
  }
  return files;
}

void read_through(const spec::DataSource& source) {
  std::visit([](const auto& kind) { read_all(kind); }, source.kind);
}

}  // namespace muster::data
