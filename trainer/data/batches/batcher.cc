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
      sample_bytes_(dataset.sample_bytes()),
      samples_(static_cast<size_t>(most_rows)),
      features_(static_cast<size_t>(most_rows)),
      positions_(static_cast<size_t>(most_rows)),
      benches_(static_cast<size_t>(threads)) {
  if (threads > 1) team_ = std::make_unique<host::Team>(threads, /*exclusive=*/false);
  if (features == Features::copied || dataset.made_on_use())
    copies_ = Storage(features_.size() * sample_bytes_);
  const auto label_count = static_cast<size_t>(dataset.label_count());
  if (dataset.label_kind() == compute::LabelKind::classes)
    labels_.resize(features_.size());
  else if (label_count > 0)
    targets_.resize(features_.size());
  if (dataset.label_kind() == compute::LabelKind::objects) {
    objects_.resize(features_.size() * label_count);
    for (size_t row = 0; row < targets_.size(); ++row) targets_[row] = &objects_[row * label_count];
  }
  batch_.type = dataset.element_type();
  batch_.scale = dataset.scale();
  batch_.offset = dataset.offset();
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
  uint64_t sample = samples_[row];
  if (copies.empty()) {
    features_[row] = dataset_.features(sample);
  } else {
    std::byte* copy = &copies[row * sample_bytes_];
    sample = make(augmentation, row, copy, bench.sample);
    features_[row] = copy;
  }
  if (!labels_.empty())
    labels_[row] = dataset_.made_on_use() ? bench.sample.label : dataset_.label(sample);
  if (!objects_.empty())
    write_boxes(row, bench);
  else if (!targets_.empty())
    targets_[row] = dataset_.target(sample);
}

// Writes the objects that the stages have left to the row's target.
void BatchBuffer::write_boxes(size_t row, Workbench& bench) {
  const Sample& sample = bench.sample;
  bench.found.clear();
  for (const images::Box& box : sample.boxes) {
    const auto height = static_cast<float>(sample.original.height);
    const auto width = static_cast<float>(sample.original.width);
    const float area = box.area > 0 ? box.area : box.height() * height * box.width() * width;
    bench.found.push_back(
        {{box.ymin, box.xmin, box.ymax, box.xmax}, box.label, 1.0f, box.crowd, area});
  }
  const auto floats = static_cast<size_t>(dataset_.label_count());
  detection::write_objects(static_cast<float>(sample.original.height),
                           static_cast<float>(sample.original.width), bench.found,
                           std::span(objects_).subspan(row * floats, floats));
}

// Makes the row's sample or, if it is damaged, the next undamaged sample of its shard. Returns the
// sample's index. So neither the epoch's order nor any other sample depends on the thread that
// finds the damage.
uint64_t BatchBuffer::make(const Augmentation& augmentation, size_t row, std::byte* copy,
                           Sample& workspace) {
  uint64_t sample = samples_[row];
  for (uint64_t tried = 1;; ++tried) {
    try {
      augmentation.apply(dataset_, sample, batch_.epoch, positions_[row], copy, workspace);
      if (!workspace.oddity.empty()) dataset_.report_odd(sample, workspace.oddity);
      return sample;
    } catch (const Invalid& error) {
      dataset_.report_corrupt(sample, error.what());
      if (tried == shard_.samples) throw;
    }
    sample = shard_.begin + (sample + 1 - shard_.begin) % shard_.samples;
  }
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
