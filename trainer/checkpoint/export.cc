#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "common/file.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/unique_name.h"

namespace muster::checkpoint {

std::filesystem::path export_model(const std::filesystem::path& job_directory,
                                   const compute::ParameterLayout& layout,
                                   std::span<const float> parameters, const Json& training) {
  const std::filesystem::path folder = job_directory / "model";
  muster::create_directories(folder);
  const std::filesystem::path path = folder / "model.safetensors";
  const std::filesystem::path temporary = folder / (".model.safetensors.tmp-" + unique_name());
  const auto pieces = pieces_of(layout, {0, layout.size()}, parameters, "");
  write_safetensors(temporary, pieces, {{"format", "muster"}, {"training", training.dump()}});
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
