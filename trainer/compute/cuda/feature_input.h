#pragma once

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <span>

#include "trainer/compute/cuda/gpu.h"
#include "trainer/compute/engine.h"

namespace muster::compute::cuda {

// It says where a GPU finds the features of a batch.
struct FeatureSource {
  const void* from = nullptr;
  ElementType type = ElementType::float32;
  bool scattered = false;  // the rows begin at `starts`; else they follow each other
  bool operator==(const FeatureSource&) const = default;
};

// Brings the features of batches to a GPU: from memory of the host, while the GPU computes with the
// batch before, or not at all where the GPU keeps a copy of the data set.
class FeatureInput {
 public:
  // `width` is the number of a row's elements.
  FeatureInput(Gpu& gpu, int64_t max_rows, int64_t width);

  // See Engine. A copy is made when the first batch comes: by then the job has what else it needs.
  std::shared_ptr<void> serve(std::span<const std::byte> memory, Content content);
  void prepare(const Batch& next);

  // Whether the GPU has a copy of the batch's data.
  bool has(const Batch& batch) { return copied(batch) != nullptr; }
  // Makes the GPU's next work wait until the features of the batch are there. `starts`, host memory
  // for the rows, receives how many elements lie before each row of a scattered source.
  FeatureSource take(const Batch& batch, uint64_t* starts);
  // Asks for the values of the features, [rows, width]; `starts` is memory of the GPU.
  void convert(const FeatureSource& source, int64_t rows, float scale, float offset,
               const uint64_t* starts, float* to) const;
  // Waits until the GPU no longer reads the host's memory of any batch.
  void finish_reading() { gpu_.await_brought(); }

 private:
  // It tells a batch that is on its way from all others.
  struct Key {
    explicit Key(const Batch& batch);
    bool operator==(const Key&) const = default;

    ElementType type;
    int64_t rows;
    const void* const* features;
    const void *first, *last;
    uint64_t epoch, position;
  };
  // Allocated when it is needed.
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
  size_t current_ = 0;           // the landing that was taken last
  std::optional<Key> prepared_;  // in the other one
  std::list<Served> served_;
};

}  // namespace muster::compute::cuda
