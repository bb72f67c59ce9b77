#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>

#include "common/digest.h"
#include "common/error.h"
#include "common/file.h"
#include "common/input_file.h"
#include "common/log.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/slices.h"
#include "trainer/checkpoint/store.h"
#include "trainer/checkpoint/unique_name.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";

struct Contents {
  std::vector<Slice> slices;
  Json index;
};

// Hugging Face's index of the model's files. It maps a tensor that is cut between files to the file
// with its first rows; "slices" in the metadata lists all of them.
class IndexBuilder {
 public:
  void add(const std::string& file, const SafetensorsHeader& header,
           const std::vector<Slice>& slices) {
    for (const auto& tensor : header.tensors) {
      total_ += tensor.end - tensor.begin;
      const auto slice = std::find_if(slices.begin(), slices.end(),
                                      [&](const Slice& s) { return s.tensor == tensor.name; });
      if (slice != slices.end()) {
        cut_[tensor.name].push_back(
            {{"file", file}, {"first_row", slice->first_row}, {"shape", slice->shape}});
        if (slice->first_row > 0) continue;
      }
      files_[tensor.name] = file;
    }
  }
  Json json() const {
    Json metadata = {{"total_size", total_}};
    if (!cut_.empty()) metadata["slices"] = cut_;
    return {{"metadata", metadata}, {"weight_map", files_}};
  }

 private:
  uint64_t total_ = 0;
  std::map<std::string, std::string> files_;
  std::map<std::string, Json> cut_;
};

Contents inspect(const fs::path& folder, const Manifest& manifest) {
  Contents contents;
  IndexBuilder index;
  for (const FileEntry& entry : manifest.files) {
    const InputFile file(folder / entry.name);
    if (file.size() != entry.bytes) {
      throw Invalid(fmt::format("{}: expected {} bytes, found {}", file.path().string(),
                                entry.bytes, file.size()));
    }
    if (!entry.name.ends_with(".safetensors")) continue;
    const SafetensorsHeader header = SafetensorsHeader::read(file);
    const std::vector<Slice> slices = slices_of(header, entry.name);
    contents.slices.insert(contents.slices.end(), slices.begin(), slices.end());
    if (entry.name.starts_with("model")) index.add(entry.name, header, slices);
  }
  contents.index = index.json();
  return contents;
}

void rename_folder(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno == ENOTEMPTY || errno == EEXIST) {
    throw Invalid(fmt::format("{} was published before: a step is published once in a generation",
                              to.string()));
  }
  throw WriteError(fmt::format("cannot publish {}", to.string()), errno);
}

}  // namespace

fs::path Store::begin(uint64_t step) {
  muster::create_directories(directory_);
  remove_leftovers(std::chrono::hours(1));
  const fs::path path = directory_ / fmt::format("ckpt-{}.tmp-{}", step, unique_name());
  muster::create_directories(path);
  return path;
}

fs::path Store::publish(const fs::path& temporary, const Manifest& manifest) {
  const fs::path target =
      directory_ / FolderName{manifest.position.step, manifest.generation}.text();
  if (published(manifest.position.step, manifest.generation)) {
    throw Invalid(fmt::format("{} was published before: a step is published once in a generation",
                              target.string()));
  }
  Contents contents = inspect(temporary, manifest);
  Manifest complete = manifest;
  complete.slices = std::move(contents.slices);
  const std::string index = contents.index.dump(2) + "\n";
  write_file_atomically(temporary / kIndex, index);
  complete.files.push_back({kIndex, index.size(), crc32c(std::as_bytes(std::span(index)))});
  write_file_atomically(temporary / "manifest.json", to_text(complete));
  sync_directory(temporary);
  rename_folder(temporary, target);
  sync_directory(directory_);
  try {
    prune();
    write_state();
  } catch (const std::runtime_error& error) {
    log::warning(fmt::format("{} is published, but tidying up after it failed: {}", target.string(),
                             error.what()));
  }
  return target;
}

void Store::discard(const fs::path& temporary) noexcept {
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
}

bool Store::published(uint64_t step, uint64_t generation) const {
  std::error_code ignored;
  return fs::exists(directory_ / FolderName{step, generation}.text(), ignored);
}

// Writes TensorFlow's CheckpointState in protobuf's text format; paths are relative to the file.
void Store::write_state() const {
  const std::vector<FolderName> names = list();
  if (names.empty()) return;
  std::string text = fmt::format("model_checkpoint_path: \"{}\"\n", names.front().text());
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    text += fmt::format("all_model_checkpoint_paths: \"{}\"\n", name->text());
  }
  write_file_atomically(directory_ / "checkpoint", text);
}

}  // namespace muster::checkpoint
