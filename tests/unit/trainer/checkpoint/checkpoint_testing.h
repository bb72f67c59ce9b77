#pragma once

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "gtest/gtest.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/common/temporary_folder.h"
#include "trainer/checkpoint/store/checkpoint.h"

namespace muster::checkpoint {

namespace fs = std::filesystem;

using TestFolder = test::TemporaryFolder;

inline std::string read_all(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline void write_all(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline void flip_bit(const fs::path& path, size_t byte) {
  std::string bytes = read_all(path);
  bytes.at(byte) = static_cast<char>(bytes.at(byte) ^ 1);
  write_all(path, bytes);
}

using test::error_of;

inline compute::ParameterLayout layout_of(
    const std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors) {
  std::vector<compute::ParameterTensor> list;
  for (const auto& [name, shape] : tensors) {
    list.emplace_back();
    list.back().name = name;
    list.back().shape = shape;
  }
  return compute::ParameterLayout(std::move(list));
}

// A kernel whose rows are longer than the alignment, one of a convolution, a scalar, a frozen
// tensor and a state one.
inline compute::ParameterLayout test_layout() {
  using compute::Segment;
  auto tensor = [](std::string name, std::vector<int64_t> shape,
                   Segment segment = Segment::trainable) {
    compute::ParameterTensor t;
    t.name = std::move(name);
    t.shape = std::move(shape);
    t.segment = segment;
    return t;
  };
  return compute::ParameterLayout(
      {tensor("image/kernel", {3, 1, 4, 16}), tensor("hidden/kernel", {7, 70}),
       tensor("hidden/bias", {70}), tensor("temperature", {}),
       tensor("frozen/kernel", {3, 5}, Segment::frozen), tensor("norm/mean", {5}, Segment::state)});
}

// A different value for each parameter; padding is zero.
inline std::vector<float> test_values(const compute::ParameterLayout& layout, float first = 1.0f) {
  std::vector<float> values(layout.size(), 0.0f);
  for (const auto& tensor : layout.tensors()) {
    std::iota(values.begin() + static_cast<std::ptrdiff_t>(tensor.offset),
              values.begin() + static_cast<std::ptrdiff_t>(tensor.offset + tensor.count),
              first + static_cast<float>(tensor.offset));
  }
  return values;
}

inline Manifest test_manifest(uint64_t step, uint64_t generation) {
  Manifest manifest;
  manifest.job_uid = "uid-1";
  manifest.generation = generation;
  manifest.position = {.step = step,
                       .epoch = 1,
                       .next_batch = 3,
                       .optimizer_t = step,
                       .outstanding = {8, 9},
                       .sums = {},
                       .evaluations = {}};
  manifest.model = "mnist-mlp";
  manifest.layout_fingerprint = "layout";
  manifest.fingerprint = "release/avx2/float32/2";
  manifest.metrics = {{"loss", 0.25}};
  manifest.training = {{"batchSize", 32}};
  return manifest;
}

struct Slot {
  std::string name = "m";
  std::vector<float> values;  // empty: those of the parameters
};

// Publishes parameters and one slot, cut as `shards` parameter servers do.
inline fs::path publish(Store& store, Manifest manifest, const compute::ParameterLayout& layout,
                        const std::vector<float>& values, int shards = 1, const Slot& slot = {}) {
  const fs::path temporary = store.begin(manifest.position.step);
  const std::vector<compute::Range> ranges = layout.partition(shards);
  for (int shard = 0; shard < shards; ++shard) {
    const compute::Range range = ranges[static_cast<size_t>(shard)];
    const auto write = [&](const char* kind, std::span<const float> all,
                           const std::string& prefix) {
      const auto part = all.subspan(range.begin, range.size());
      manifest.files.push_back(write_safetensors(temporary / shard_file_name(kind, shard, shards),
                                                 pieces_of(layout, range, part, prefix), {}));
    };
    write("model", values, "");
    write("optimizer", slot.values.empty() ? values : slot.values, slot.name + "/");
  }
  return store.publish(temporary, manifest);
}

}  // namespace muster::checkpoint
