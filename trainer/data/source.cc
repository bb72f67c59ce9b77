#include <fmt/format.h>

#include "common/error.h"
#include "trainer/data/dataset.h"
#include "trainer/data/idx.h"
#include "trainer/data/memory_dataset.h"
#include "trainer/data/selection.h"
#include "trainer/data/source_file.h"
#include "trainer/data/synthetic.h"

namespace muster::data {
namespace {

Samples read_idx(const spec::DataSource& source) {
  const Selection selection = Selection::of(source);
  IdxImages images =
      read_idx_images(SourceFile(source.images, kImages).stream(), selection, storage_kind(source));
  Samples samples;
  samples.name = source.images.string();
  samples.first = images.first;
  samples.count = images.count;
  samples.shape = std::move(images.shape);
  samples.type = compute::ElementType::uint8;
  samples.features = std::move(images.pixels);
  samples.scale = source.scale;
  if (source.labels.empty()) return samples;

  const IdxLabels labels = read_idx_labels(SourceFile(source.labels, kLabels).stream());
  require_as_many(labels, source.labels.string(), images.samples_in_file, source.images.string());
  samples.name = source.labels.string();
  samples.label_count = labels.largest + 1;
  const auto first = labels.labels.begin() + static_cast<int64_t>(samples.first);
  samples.labels.assign(first, first + static_cast<int64_t>(samples.count));
  return samples;
}

Samples read_source(const spec::DataSource& source) {
  switch (source.kind) {
    case spec::SourceKind::idx:
      return read_idx(source);
    case spec::SourceKind::synthetic_linear:
      return make_linear(source);
    case spec::SourceKind::synthetic_classes:
      return make_classes(source);
  }
  throw Invalid("data source of a kind that this build does not know");
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const spec::DataSource& source) {
  return std::make_unique<MemoryDataset>(read_source(source));
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
