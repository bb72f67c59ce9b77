#include "common/background.h"
#include "trainer/checkpoint/checkpoint.h"

namespace muster::checkpoint {

std::vector<FileEntry> write_state(const std::filesystem::path& directory, const State& state,
                                   int shard, int shards, SpeedLimit& limit) {
  std::vector<TensorPiece> slots;
  for (size_t i = 0; i < state.slots.size(); ++i)
    for (auto& piece :
         pieces_of(state.layout, state.range, state.slots[i], state.slot_names[i] + "/"))
      slots.push_back(std::move(piece));
  return in_background([&] {
    std::vector<FileEntry> files;
    const auto add = [&](std::string_view kind, std::span<const TensorPiece> pieces) {
      files.push_back(
          write_safetensors(directory / shard_file_name(kind, shard, shards), pieces, {}, &limit));
    };
    add("model", pieces_of(state.layout, state.range, state.parameters, ""));
    if (!state.slots.empty()) add("optimizer", slots);
    return files;
  });
}

}  // namespace muster::checkpoint
