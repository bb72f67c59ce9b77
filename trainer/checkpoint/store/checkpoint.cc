#include "trainer/checkpoint/store/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "common/digest.h"
#include "common/error.h"
#include "common/system/file.h"
#include "common/threads/background.h"
#include "trainer/checkpoint/store/unique_name.h"

namespace muster::checkpoint {

std::vector<TensorPiece> pieces_of(const compute::ParameterLayout& layout, compute::Range range,
                                   std::span<const float> values, const std::string& prefix) {
  if (values.size() != range.size()) {
    throw Invalid(fmt::format("expected {} floats for the range [{}, {}), found {}", range.size(),
                              range.begin, range.end, values.size()));
  }
  std::vector<TensorPiece> pieces;
  for (const auto& tensor : layout.tensors()) {
    const size_t begin = std::max(range.begin, tensor.range().begin);
    const size_t end = std::min(range.end, tensor.range().end);
    if (begin >= end) continue;
    const auto row = static_cast<size_t>(compute::row_floats(tensor.shape));
    if ((begin - tensor.offset) % row != 0 || (end - tensor.offset) % row != 0) {
      throw Invalid(fmt::format("range [{}, {}) cuts {} inside a row of {} floats", range.begin,
                                range.end, tensor.name, row));
    }
    pieces.push_back({.name = prefix + tensor.name,
                      .shape = tensor.shape,
                      .first_row = static_cast<int64_t>((begin - tensor.offset) / row),
                      .rows = static_cast<int64_t>((end - begin) / row),
                      .values = values.subspan(begin - range.begin, end - begin)});
  }
  return pieces;
}

std::string weights_digest(const compute::ParameterLayout& layout,
                           std::span<const float> parameters) {
  Sha256 digest;
  for (const TensorPiece& piece : pieces_of(layout, {0, layout.size()}, parameters, "")) {
    digest.update(std::as_bytes(piece.values));
  }
  return digest.finish();
}

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

std::filesystem::path export_model(const std::filesystem::path& job_directory,
                                   const compute::ParameterLayout& layout,
                                   std::span<const float> parameters, const Json& training,
                                   const Json& samples) {
  const std::filesystem::path folder = job_directory / "model";
  muster::create_directories(folder);
  const std::filesystem::path path = folder / "model.safetensors";
  const std::filesystem::path temporary = folder / (".model.safetensors.tmp-" + unique_name());
  const auto pieces = pieces_of(layout, {0, layout.size()}, parameters, "");
  write_safetensors(
      temporary, pieces,
      {{"format", "muster"}, {"training", training.dump()}, {"samples", samples.dump()}});
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw WriteError(fmt::format("cannot write {}", path.string()), error);
  }
  sync_directory(folder);
  return path;
}

}  // namespace muster::checkpoint
