#include "trainer/data/batches/batcher.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "common/error.h"
#include "common/threads/watched_work.h"

namespace muster::data {

BatchBuffer::BatchBuffer(const Dataset& dataset, int64_t most_rows, Features features, int threads)
    : dataset_(dataset),
      sample_bytes_(dataset.format().bytes()),
      target_floats_(static_cast<size_t>(dataset.label_count())),
      samples_(static_cast<size_t>(most_rows)),
      features_(static_cast<size_t>(most_rows)),
      weights_(dataset.has_weights() ? features_.size() : 0),
      groups_(dataset.rank_at() > 0 ? features_.size() : 0),
      positions_(static_cast<size_t>(most_rows)),
      benches_(static_cast<size_t>(threads)) {
  if (threads > 1) team_ = std::make_unique<host::Team>(threads, /*exclusive=*/false);
  const bool is_made = dataset.effort() == Effort::work;
  if (features == Features::copied || is_made) copies_ = Storage(features_.size() * sample_bytes_);
  if (dataset.label_kind() == compute::LabelKind::classes)
    labels_.resize(features_.size());
  else if (target_floats_ > 0)
    targets_.resize(features_.size());
  if (is_made) target_copies_.resize(targets_.size() * target_floats_);
  batch_.type = dataset.format().type;
  batch_.scale = dataset.format().scale;
  batch_.offset = dataset.format().offset;
}

void BatchBuffer::plan(size_t row, uint64_t sample, uint64_t position) {
  samples_[row] = sample;
  positions_[row] = position;
}

void BatchBuffer::finish(uint64_t epoch, size_t rows, const Shards::Held& shard) {
  shard_ = shard;
  batch_.rows = static_cast<int64_t>(rows);
  batch_.epoch = epoch;
  batch_.features = std::span(features_).first(rows);
  batch_.positions = std::span(positions_).first(rows);
  batch_.labels = std::span<const int32_t>(labels_).first(labels_.empty() ? 0 : rows);
  batch_.targets = std::span<const float* const>(targets_).first(targets_.empty() ? 0 : rows);
  batch_.weights = std::span<const float>(weights_).first(weights_.empty() ? 0 : rows);
  batch_.groups = std::span<const int32_t>(groups_).first(groups_.empty() ? 0 : rows);
}

void BatchBuffer::load(const Augmentation& augmentation) {
  const auto rows = static_cast<size_t>(batch_.rows);
  for (size_t row = 0; row < rows && !copies_.bytes().empty(); ++row)
    dataset_.will_need(samples_[row]);
  if (team_) return load_together(augmentation);
  for (size_t row = 0; row < rows; ++row) load_row(augmentation, row, benches_.front());
}

// A thread takes the next row when it has finished one, because some images take longer than
// others.
void BatchBuffer::load_together(const Augmentation& augmentation) {
  const auto rows = static_cast<size_t>(batch_.rows);
  std::atomic<size_t> next = 0;
  const auto work = [&](host::TeamThread thread) {
    Workbench& bench = benches_[static_cast<size_t>(thread.index)];
    try {
      for (size_t row = next++; row < rows; row = next++) load_row(augmentation, row, bench);
    } catch (...) {
      bench.failure = std::current_exception();
      next = rows;
    }
  };
  team_->run(std::cref(work));
  for (Workbench& bench : benches_)
    if (bench.failure) std::rethrow_exception(std::exchange(bench.failure, nullptr));
}

void BatchBuffer::load_row(const Augmentation& augmentation, size_t row, Workbench& bench) {
  WatchedWork::beat();
  const std::span<std::byte> copies = copies_.bytes();
  Row filled;
  if (!copies.empty()) filled.features_memory = &copies[row * sample_bytes_];
  if (!target_copies_.empty()) filled.target_memory = &target_copies_[row * target_floats_];
  dataset_.fill({samples_[row], batch_.epoch, positions_[row], shard_}, augmentation, bench.sample,
                filled);
  features_[row] = filled.features;
  if (!labels_.empty()) labels_[row] = filled.label;
  if (!targets_.empty()) targets_[row] = filled.target;
  if (!weights_.empty()) weights_[row] = filled.weight;
  if (!groups_.empty()) groups_[row] = filled.group;
}

Batcher::Batcher(const Dataset& dataset, Shards shards, bool shuffle, uint64_t seed,
                 std::vector<spec::StageKind> stages)
    : dataset_(dataset), shards_(std::move(shards)), augmentation_(std::move(stages), seed) {
  for (const Shards::Held& held : shards_.held()) {
    orders_.emplace_back(held.samples, shuffle, shard_seed(seed, held.shard));
  }
}

Batcher::Batcher(const Dataset& dataset, int64_t rows)
    : Batcher(dataset, Shards::by_record(dataset.size(), {.rows = rows}), false, 0) {}

void Batcher::plan(BatchBuffer& buffer, uint64_t epoch, uint64_t number) {
  const Shards::Place place = shards_.place(number);
  const Shards::Held& shard = shards_.held()[place.held];
  const uint64_t position = number * static_cast<uint64_t>(shards_.most_rows());
  const auto rows = static_cast<size_t>(place.rows);
  for (size_t row = 0; row < rows; ++row) {
    buffer.plan(row, shard.begin + orders_[place.held].at(epoch, place.begin + row),
                position + row);
  }
  buffer.finish(epoch, rows, shard);
}

const compute::Batch& Batcher::load(BatchBuffer& buffer) const {
  buffer.load(augmentation_);
  return buffer.batch();
}

void Batcher::will_need(uint64_t epoch, uint64_t number) {
  const Shards::Place place = shards_.place(number);
  const uint64_t first = shards_.held()[place.held].begin;
  for (uint64_t row = 0; row < static_cast<uint64_t>(place.rows); ++row) {
    dataset_.will_need(first + orders_[place.held].at(epoch, place.begin + row));
  }
}

}  // namespace muster::data
