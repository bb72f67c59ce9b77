#include "trainer/data/images/image_files.h"

#include <algorithm>
#include <cctype>

#include "common/system/input_file.h"

namespace muster::data {

namespace {

constexpr uint64_t kMostImageBytes = uint64_t{1} << 28;

}  // namespace

std::string ending_of(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

bool has_image_ending(const std::filesystem::path& path) {
  const std::string ending = ending_of(path);
  return ending == ".jpg" || ending == ".jpeg" || ending == ".jpe" || ending == ".jfif" ||
         ending == ".png";
}

uint64_t file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

std::string read_image_file(const std::filesystem::path& path) {
  return InputFile(path).text(kMostImageBytes);
}

void ImageFiles::read(uint64_t image, EncodedImage& to) const {
  to.bytes = read_image_file(files_[image].path);
  to.label = files_[image].label;
}

}  // namespace muster::data
