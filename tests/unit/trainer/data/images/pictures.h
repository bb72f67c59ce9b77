#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "common/system/file.h"
#include "trainer/data/sources/source.h"
#include "trainer/images/encode.h"
#include "trainer/images/image.h"

namespace muster::data {

// A picture with a gradient and a square, both of which depend on `number`; `base` is its colour.
inline images::Image picture(int number, size_t height, size_t width,
                             const std::array<int, 3>& base = {200, 120, 40}) {
  images::Image image;
  image.resize(height, width);
  const auto n = static_cast<size_t>(number);
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      const bool square = (x + 3 * n) % width < width / 3 && (y + 5 * n) % height < height / 3;
      for (size_t c = 0; c < 3; ++c) {
        const size_t gradient = (x * 40 / width + y * 30 / height + 7 * n) % 60;
        image.row(y)[3 * x + c] = static_cast<uint8_t>(
            (static_cast<size_t>(base[c]) + gradient + (square ? 50 : 0)) % 256);
      }
    }
  }
  return image;
}

inline std::string jpeg(int number, size_t height = 24, size_t width = 32) {
  return images::encode_jpeg(picture(number, height, width).view(), 90);
}
inline std::string png(int number, size_t height = 24, size_t width = 32) {
  return images::encode_png(picture(number, height, width).view());
}

// Writes a file, and the folders that it is in.
inline void put(const std::filesystem::path& path, const std::string& bytes) {
  muster::create_directories(path.parent_path());
  write_file_atomically(path, bytes);
}

inline spec::ImageSettings settings(int64_t height, int64_t width, int64_t channels = 3) {
  spec::ImageSettings settings;
  settings.height = height;
  settings.width = width;
  settings.channels = channels;
  return settings;
}

inline spec::DataSource folder_source(const std::filesystem::path& path,
                                      const spec::ImageSettings& images = settings(8, 10)) {
  spec::DataSource source;
  source.kind = spec::ImageFolderSource{path, images};
  return source;
}

}  // namespace muster::data
