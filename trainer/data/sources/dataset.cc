#include "trainer/data/sources/dataset.h"

#include <fmt/format.h>

#include "common/error.h"

namespace muster::data {

void require_labels_below(const Dataset& dataset, int64_t classes) {
  if (dataset.label_kind() != compute::LabelKind::classes || dataset.label_count() <= classes)
    return;
  for (uint64_t i = 0; i < dataset.size(); ++i) {
    const int32_t label = dataset.label(i);
    if (label < 0 || label >= classes) {
      throw Invalid(fmt::format("label {} of {} is out of range for {} classes (0 to {})", label,
                                dataset.describe(i), classes, classes - 1));
    }
  }
}

void require_targets_within(const Dataset& dataset, float least, float most) {
  Sample workspace;
  for (uint64_t i = 0; i < dataset.size(); ++i) {
    Row row;
    dataset.fill({.sample = i}, {}, workspace, row);
    for (const float number : std::span(row.target, static_cast<size_t>(dataset.label_count())))
      if (!(number >= least && number <= most))
        throw Invalid(fmt::format("{}: expected a target from {} to {}, found {}",
                                  dataset.describe(i), least, most, number));
  }
}

}  // namespace muster::data
