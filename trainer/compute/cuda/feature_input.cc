#include "trainer/compute/cuda/feature_input.h"

#include <algorithm>
#include <cstring>

namespace muster::compute::cuda {
namespace {

// A copy of a data set may take so large a part of the GPU's free memory.
constexpr size_t kMostOfFree = 4;

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
    : gpu_(gpu),
      max_rows_(max_rows),
      width_(width),
      landings_{Landing{{gpu, max_rows * width * int64_t{sizeof(float)}}, {}},
                Landing{{gpu, max_rows * width * int64_t{sizeof(float)}}, {}}} {}

std::shared_ptr<void> FeatureInput::serve(std::span<const std::byte> memory, Content content) {
  Served& served = served_.emplace_back(memory);
  if (content == Content::constant && memory.size() <= gpu_.free_bytes() / kMostOfFree) {
    served.copy.emplace(gpu_, static_cast<int64_t>(memory.size()));
    gpu_.upload(served.copy->data(), memory.data(), memory.size());
    gpu_.wait();
  } else {
    served.pinned = gpu_.pin(memory.data(), memory.size());
  }
  return {&served, [this](Served* ended) {
            if (ended->pinned) gpu_.unpin(ended->memory.data());
            served_.remove_if([ended](const Served& one) { return &one == ended; });
          }};
}

bool FeatureInput::lies_in(const Served& served, const Batch& batch) const {
  const size_t bytes = bytes_of_row(batch);
  return std::ranges::all_of(batch.features, [&](const void* row) {
    const auto* at = static_cast<const std::byte*>(row);
    return at >= served.memory.data() && at + bytes <= served.memory.data() + served.memory.size();
  });
}

const FeatureInput::Served* FeatureInput::copied(const Batch& batch) const {
  const auto found = std::ranges::find_if(
      served_, [&](const Served& one) { return one.copy && lies_in(one, batch); });
  return found == served_.end() ? nullptr : &*found;
}

void FeatureInput::bring(const Batch& batch, size_t landing) {
  const size_t bytes = bytes_of_row(batch);
  Landing& to = landings_[landing];
  const auto* first = static_cast<const char*>(batch.features.front());
  const bool in_one_piece = [&] {
    for (size_t row = 0; row < batch.features.size(); ++row)
      if (batch.features[row] != first + row * bytes) return false;
    return std::ranges::any_of(
        served_, [&](const Served& one) { return one.pinned && lies_in(one, batch); });
  }();
  const char* from = first;
  if (!in_one_piece) {
    if (!to.staged) to.staged.emplace(gpu_, max_rows_ * width_ * int64_t{sizeof(float)});
    from = to.staged->data();
    for (size_t row = 0; row < batch.features.size(); ++row)
      std::memcpy(to.staged->data() + row * bytes, batch.features[row], bytes);
  }
  gpu_.bring(to.features.data(), from, batch.features.size() * bytes);
}

void FeatureInput::prepare(const Batch& next) {
  prepared_.reset();
  if (next.rows == 0 || copied(next) != nullptr) return;
  bring(next, 1 - current_);
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
    // The other landing keeps what is prepared there.
    bring(batch, current_);
  }
  gpu_.follow_brought();
  return {landings_[current_].features.data(), batch.type, false};
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
