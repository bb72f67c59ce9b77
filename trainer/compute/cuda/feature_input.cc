#include "trainer/compute/cuda/feature_input.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "common/error.h"

namespace muster::compute::cuda {
namespace {

// A copy of a data set takes at most 1 / kPartsOfFree of the GPU's free memory.
constexpr size_t kPartsOfFree = 4;

}  // namespace

FeatureInput::Key::Key(const Batch& batch)
    : type(batch.type),
      rows(batch.rows),
      features(batch.features.data()),
      first(batch.features.front()),
      last(batch.features.back()),
      epoch(batch.epoch),
      position(batch.positions.empty() ? 0 : batch.positions.front()) {}

FeatureInput::FeatureInput(Gpu& gpu, int64_t max_rows, int64_t width)
    : gpu_(gpu), max_rows_(max_rows), width_(width) {}

std::shared_ptr<void> FeatureInput::serve(std::span<const std::byte> memory, Content content) {
  Served& served = served_.emplace_back();
  served.memory = memory;
  served.wants_copy = content == Content::constant;
  // The rows of a batch can lie anywhere in constant memory, so pinning does not help there.
  if (content == Content::changing) served.pinned = pinned(gpu_, memory);
  return {&served, [this](Served* ended) { end(*ended); }};
}

void FeatureInput::end(const Served& served) noexcept {
  try {
    finish_reading();
  } catch (const std::runtime_error&) {
    // A GPU that has failed no longer copies anything.
  }
  served_.remove_if([&](const Served& one) { return &one == &served; });
}

bool FeatureInput::lies_in(const Served& served, const Batch& batch) const {
  const size_t bytes = bytes_of_row(batch);
  return std::ranges::all_of(batch.features, [&](const void* row) {
    const auto* at = static_cast<const std::byte*>(row);
    return at >= served.memory.data() && at + bytes <= served.memory.data() + served.memory.size();
  });
}

void FeatureInput::copy(Served& served) {
  served.wants_copy = false;
  if (served.memory.size() > gpu_.free_bytes() / kPartsOfFree) return;
  served.copy.emplace(gpu_, static_cast<int64_t>(served.memory.size()));
  gpu_.upload(served.copy->data(), served.memory.data(), served.memory.size());
  gpu_.wait();
}

// Returns the served memory that holds the batch and has a copy on the GPU; null if there is none.
const FeatureInput::Served* FeatureInput::copied(const Batch& batch) {
  for (Served& served : served_) {
    if (!(served.wants_copy || served.copy) || !lies_in(served, batch)) continue;
    if (served.wants_copy) copy(served);
    if (served.copy) return &served;
  }
  return nullptr;
}

void FeatureInput::bring(const Batch& batch, Landing& landing) {
  const size_t row_bytes = bytes_of_row(batch);
  const auto most = static_cast<size_t>(max_rows_) * row_bytes;
  if (landing.bytes < most) {
    landing.features.emplace(gpu_, static_cast<int64_t>(most));
    landing.staged.reset();
    landing.bytes = most;
  }
  const auto* first = static_cast<const char*>(batch.features.front());
  const bool in_one_piece = [&] {
    for (size_t row = 0; row < batch.features.size(); ++row)
      if (batch.features[row] != first + row * row_bytes) return false;
    return std::ranges::any_of(
        served_, [&](const Served& one) { return one.pinned && lies_in(one, batch); });
  }();
  const char* from = first;
  if (!in_one_piece) {
    if (!landing.staged) landing.staged.emplace(gpu_, static_cast<int64_t>(landing.bytes));
    from = landing.staged->data();
    for (size_t row = 0; row < batch.features.size(); ++row)
      std::memcpy(landing.staged->data() + row * row_bytes, batch.features[row], row_bytes);
  }
  gpu_.bring(landing.features->data(), from, batch.features.size() * row_bytes);
}

void FeatureInput::prepare(const Batch& next) {
  finish_reading();
  prepared_.reset();
  if (next.rows == 0 || copied(next) != nullptr) return;
  bring(next, landings_[1 - current_]);
  prepared_.emplace(next);
}

FeatureSource FeatureInput::take(const Batch& batch, uint64_t* starts) {
  if (const Served* served = copied(batch)) {
    for (size_t row = 0; row < batch.features.size(); ++row) {
      const auto* at = static_cast<const std::byte*>(batch.features[row]);
      starts[row] = static_cast<uint64_t>(at - served->memory.data()) / bytes_of(batch.type);
    }
    return {served->copy->data(), batch.type, true};
  }
  if (prepared_ == Key(batch)) {
    prepared_.reset();
    current_ = 1 - current_;
  } else {
    // The other landing keeps its prepared batch.
    bring(batch, landings_[current_]);
  }
  gpu_.follow_brought();
  return {landings_[current_].features->data(), batch.type, false};
}

void FeatureInput::convert(const FeatureSource& source, int64_t rows, float scale, float offset,
                           const uint64_t* starts, float* to) const {
  const uint64_t* begin = source.scattered ? starts : nullptr;
  if (source.type == ElementType::uint8) {
    gpu_.launch(ConvertBytes{{rows, width_, begin, scale, offset, to},
                             static_cast<const uint8_t*>(source.from)});
  } else {
    gpu_.launch(ConvertFloats{{rows, width_, begin, scale, offset, to},
                              static_cast<const float*>(source.from)});
  }
}

}  // namespace muster::compute::cuda
