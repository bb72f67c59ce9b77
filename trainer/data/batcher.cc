#include <algorithm>

#include "trainer/data/dataset.h"

namespace muster::data {
namespace {

// How many of `rows` positions from `begin` there are.
uint64_t clip(uint64_t size, uint64_t max_rows, uint64_t begin, int64_t rows) {
  if (begin >= size || rows <= 0) return 0;
  return std::min({static_cast<uint64_t>(rows), size - begin, max_rows});
}

}  // namespace

Batcher::Batcher(const Dataset& dataset, EpochOrder& order, int64_t max_rows)
    : dataset_(dataset),
      order_(order),
      max_rows_(static_cast<uint64_t>(std::max<int64_t>(max_rows, 0))),
      features_(max_rows_),
      positions_(max_rows_) {
  if (dataset.has_labels()) {
    labels_.resize(max_rows_);
  } else if (dataset.label_count() > 0) {
    targets_.resize(max_rows_);
  }
  batch_.type = dataset.element_type();
  batch_.scale = dataset.scale();
  batch_.offset = dataset.offset();
}

const compute::Batch& Batcher::fill(uint64_t epoch, uint64_t begin, int64_t rows) {
  const uint64_t count = clip(order_.size(), max_rows_, begin, rows);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t sample = order_.at(epoch, begin + i);
    positions_[i] = begin + i;
    features_[i] = dataset_.features(sample);
    if (!labels_.empty()) labels_[i] = dataset_.label(sample);
    if (!targets_.empty()) targets_[i] = dataset_.target(sample);
  }
  batch_.rows = static_cast<int64_t>(count);
  batch_.epoch = epoch;
  batch_.features = std::span(features_).first(count);
  batch_.positions = std::span(positions_).first(count);
  batch_.labels = std::span<const int32_t>(labels_).first(labels_.empty() ? 0 : count);
  batch_.targets = std::span<const float* const>(targets_).first(targets_.empty() ? 0 : count);
  return batch_;
}

void Batcher::prefetch(uint64_t epoch, uint64_t begin, int64_t rows) {
  const uint64_t count = clip(order_.size(), max_rows_, begin, rows);
  for (uint64_t i = 0; i < count; ++i) dataset_.will_need(order_.at(epoch, begin + i));
}

}  // namespace muster::data
