#include "trainer/data/images/image_files.h"

#include <algorithm>
#include <cctype>

#include "common/input_file.h"

namespace muster::data {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 28;

}  // namespace

bool has_image_ending(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

uint64_t ImageFiles::most_bytes(uint64_t image) const {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(files_[image].path, error);
  return error ? 0 : bytes;
}

int32_t ImageFiles::read(uint64_t image, std::string& bytes) const {
  bytes = InputFile(files_[image].path).text(kMostBytes);
  return files_[image].label;
}

}  // namespace muster::data
