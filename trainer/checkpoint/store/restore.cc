#include "trainer/checkpoint/store/restore.h"

#include "trainer/checkpoint/files/shards.h"
#include "trainer/compute/optimizer.h"

namespace muster::checkpoint {
namespace {

Shards open_all(const Store::Found& found) {
  Shards shards(found.directory.string());
  for (const FileEntry& entry : found.manifest.files) {
    if (entry.name.ends_with(".safetensors")) {
      shards.add(found.directory / entry.name, &found.manifest.slices);
    }
  }
  return shards;
}

}  // namespace

void load(const Store::Found& found, const compute::ParameterLayout& layout, compute::Range range,
          std::span<float> values, const std::string& prefix) {
  open_all(found).load(layout, range, values, prefix);
}

void load_weights(const Store::Found& found, const compute::ParameterLayout& layout,
                  std::span<float> values) {
  const Shards shards = open_all(found);
  shards.load(layout, {0, layout.size()}, values, "");
  const compute::Range trained = layout.segment(compute::Segment::trainable);
  const std::string prefix = std::string(compute::kAverageSlot) + "/";
  if (trained.size() == 0 || !shards.has(prefix + layout.tensors().front().name)) return;
  shards.load(layout, trained, values.subspan(trained.begin, trained.size()), prefix);
}

}  // namespace muster::checkpoint
