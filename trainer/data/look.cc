#include "trainer/data/look.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"
#include "trainer/data/idx.h"
#include "trainer/data/source_file.h"

namespace muster::data {
namespace {

spec::DataFacts read_facts(const spec::DataSource& source, ByteStream& images,
                           ByteStream& label_stream) {
  spec::DataFacts facts;
  const IdxShape shape = read_idx_shape(images);
  facts.samples = shape.samples;
  facts.sample_shape = shape.sample;
  const IdxLabels labels = read_idx_labels(label_stream);
  require_as_many(labels, source.labels.string(), shape.samples, source.images.string());
  facts.label_count = labels.largest + 1;
  const auto largest = std::ranges::max_element(labels.labels);
  facts.largest_label = fmt::format("label {} of sample {} of {}", labels.largest,
                                    largest - labels.labels.begin(), source.labels.string());
  return facts;
}

}  // namespace

std::optional<spec::DataFacts> look_at(const spec::DataSource& source) {
  if (source.kind != spec::SourceKind::idx || !unreadable_files(source).empty()) {
    return std::nullopt;
  }
  try {
    SourceFile images(source.images, kImages), labels(source.labels, kLabels);
    return read_facts(source, images.stream(), labels.stream());
  } catch (const Invalid& error) {
    spec::DataFacts facts;
    facts.malformed = error.what();
    return facts;
  }
}

std::vector<UnreadableFile> unreadable_files(const spec::DataSource& source) {
  std::vector<UnreadableFile> files;
  const auto open = [&](const char* field, const std::filesystem::path& path, const char* what) {
    try {
      SourceFile file(path, what);
    } catch (const Invalid& error) {
      files.push_back({field, error.what()});
    }
  };
  if (source.kind != spec::SourceKind::idx) return files;
  open("images", source.images, kImages);
  open("labels", source.labels, kLabels);
  return files;
}

void read_through(const spec::DataSource& source) {
  if (source.kind != spec::SourceKind::idx) return;
  skip_idx_images(SourceFile(source.images, kImages).stream());
  read_idx_labels(SourceFile(source.labels, kLabels).stream());
}

}  // namespace muster::data
