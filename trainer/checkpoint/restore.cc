#include "common/error.h"
#include "trainer/checkpoint/shards.h"
#include "trainer/checkpoint/store.h"

namespace muster::checkpoint {

void Store::load(const Found& found, const compute::ParameterLayout& layout, compute::Range range,
                 std::span<float> values, const std::string& prefix) {
  Shards shards(found.directory.string());
  for (const FileEntry& entry : found.manifest.files) {
    if (entry.name.ends_with(".safetensors")) {
      shards.add(found.directory / entry.name, &found.manifest.slices);
    }
  }
  shards.load(layout, range, values, prefix);
}

}  // namespace muster::checkpoint
