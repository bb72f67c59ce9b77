#pragma once

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <span>

#include "trainer/compute/cuda/gpu.h"
#include "trainer/compute/engine.h"

namespace muster::compute::cuda {

// The place where a GPU finds the features of a batch.
struct FeatureSource {
  const void* from = nullptr;
  ElementType type = ElementType::float32;
  bool scattered = false;  // the rows begin at `starts`; else they are contiguous
  bool operator==(const FeatureSource&) const = default;
};

// Brings the features of batches to a GPU: copies them from the host's memory while the GPU
// computes with the previous batch, or uses the GPU's copy of the data set.
class FeatureInput {
 public:
  // `width` is the number of elements in a row.
  FeatureInput(Gpu& gpu, int64_t max_rows, int64_t width);

  // See Engine. A copy is made at the first batch, when the job has allocated its other memory.
  std::shared_ptr<void> serve(std::span<const std::byte> memory, Content content);
  void prepare(const Batch& next);

  // Whether the GPU has a copy of the batch's data.
  bool has(const Batch& batch) { return copied(batch) != nullptr; }
  // Makes the GPU's next work wait until the features of the batch are there. If the source is
  // scattered, `starts` (host memory for the rows) receives the number of elements before each row.
  FeatureSource take(const Batch& batch, uint64_t* starts);
  // Asks the GPU to compute the values of the features, [rows, width]; `starts` is memory of the
  // GPU.
  void convert(const FeatureSource& source, int64_t rows, float scale, float offset,
               const uint64_t* starts, float* to) const;
  // Waits until the GPU no longer reads the host's memory of any batch.
  void finish_reading() { gpu_.await_brought(); }

 private:
  // Identifies a batch whose copy has begun.
  struct Key {
    explicit Key(const Batch& batch);
    bool operator==(const Key&) const = default;

    ElementType type;
    int64_t rows;
    const void* const* features;
    const void *first, *last;
    uint64_t epoch, position;
  };
  // Memory for the features of a batch, allocated when it is needed.
  struct Landing {
    size_t bytes = 0;
    std::optional<GpuArray<char>> features;
    std::optional<HostArray<char>> staged;
  };
  struct Served {
    std::span<const std::byte> memory;
    bool wants_copy = false;
    std::optional<GpuArray<char>> copy;
    std::shared_ptr<void> pinned;
  };

  void end(const Served& served) noexcept;
  bool lies_in(const Served& served, const Batch& batch) const;
  const Served* copied(const Batch& batch);
  void copy(Served& served);
  void bring(const Batch& batch, Landing& landing);
  size_t bytes_of_row(const Batch& batch) const {
    return static_cast<size_t>(width_) * bytes_of(batch.type);
  }

  Gpu& gpu_;
  const int64_t max_rows_, width_;
  std::array<Landing, 2> landings_;
  size_t current_ = 0;           // the landing that was used last
  std::optional<Key> prepared_;  // the batch in the other landing
  std::list<Served> served_;
};

}  // namespace muster::compute::cuda
