#include "trainer/data/sources/stored_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace muster::data {

StoredDataset::StoredDataset(Samples samples)
    : Dataset({.size = samples.count,
               .format = {.shape = samples.shape,
                          .type = samples.type,
                          .scale = samples.scale,
                          .classes = samples.classes,
                          .table = samples.table},
               .label_kind = samples.labels.empty() ? compute::LabelKind::floats
                                                    : compute::LabelKind::classes,
               .label_count = samples.label_count,
               .has_weights = !samples.weights.empty(),
               .rank_at = samples.rank_at,
               .effort = samples.features.kind() == StorageKind::memory ? Effort::none
                                                                        : Effort::waiting}),
      samples_(std::move(samples)),
      sample_bytes_(format().bytes()) {
  traits.stored = samples_.features.bytes().first(size() * sample_bytes_);
}

std::string StoredDataset::describe(uint64_t sample) const {
  const auto after = std::ranges::upper_bound(samples_.origins, sample, {}, &Origin::begin);
  const Origin& origin = *std::prev(after);
  return fmt::format("sample {} of {}", origin.first + sample - origin.begin, origin.name);
}

void StoredDataset::will_need(uint64_t sample) const {
  samples_.features.will_need(sample * sample_bytes_, sample_bytes_);
}

void StoredDataset::fill(const Use& use, const Augmentation& augmentation, Sample& workspace,
                         Row& row) const {
  const std::byte* from = stored().data() + use.sample * sample_bytes_;
  row.features = row.features_memory != nullptr ? row.features_memory : from;
  if (!augmentation.empty()) {
    workspace.shape = samples_.shape;
    workspace.element_bytes = compute::bytes_of(samples_.type);
    workspace.features.assign(from, from + sample_bytes_);
    augmentation.apply(workspace, use.epoch, use.position, row.features_memory);
  } else if (row.features_memory != nullptr) {
    std::memcpy(row.features_memory, from, sample_bytes_);
  }
  if (!samples_.labels.empty()) row.label = samples_.labels[use.sample];
  if (!samples_.targets.empty())
    row.target = &samples_.targets[use.sample * static_cast<uint64_t>(label_count())];
  if (has_weights()) row.weight = samples_.weights[use.sample];
  if (rank_at() > 0) row.group = samples_.groups[use.sample];
}

}  // namespace muster::data
