#include "trainer/checkpoint/store/contents.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "common/error.h"
#include "common/system/input_file.h"
#include "trainer/checkpoint/files/slices.h"

namespace muster::checkpoint {
namespace {

class IndexBuilder {
 public:
  void add(const std::string& file, const SafetensorsHeader& header,
           const std::vector<Slice>& slices) {
    const auto slice_of = slices_by_tensor(slices, file);
    for (const auto& tensor : header.tensors) {
      total_ += tensor.end - tensor.begin;
      if (const auto found = slice_of.find(tensor.name); found != slice_of.end()) {
        const Slice& slice = *found->second;
        cut_[tensor.name].push_back(
            {{"file", file}, {"first_row", slice.first_row}, {"shape", slice.shape}});
        if (slice.first_row > 0) continue;
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

}  // namespace

Contents read_contents(const std::filesystem::path& folder, const Manifest& manifest) {
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

}  // namespace muster::checkpoint
