#include "trainer/data/look.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/error.h"
#include "trainer/data/idx.h"

namespace muster::data {
namespace {

// A stream over a file; false where there is none to read.
struct OpenFile {
  explicit OpenFile(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return;
    file.open(path, std::ios::binary);
    if (file) stream.emplace(file, path.string(), std::filesystem::file_size(path));
  }
  std::ifstream file;
  std::optional<ByteStream> stream;
};

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
  if (source.kind != spec::SourceKind::idx) return std::nullopt;
  OpenFile images(source.images), labels(source.labels);
  if (!images.stream || !labels.stream) return std::nullopt;
  try {
    return read_facts(source, *images.stream, *labels.stream);
  } catch (const Invalid& error) {
    spec::DataFacts facts;
    facts.malformed = error.what();
    return facts;
  }
}

}  // namespace muster::data
