#include "trainer/data/images/class_folders.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"

namespace muster::data {

namespace {

namespace fs = std::filesystem;

// Returns the names of the folders in a folder, or of what else is in it, sorted by their bytes;
// without those that begin with a dot.
std::vector<fs::path> names_in(const fs::path& folder, bool of_folders) {
  std::vector<fs::path> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    fs::path name = entry->path().filename();
    std::error_code unknown;
    const bool is_folder = entry->is_directory(unknown);
    if (is_folder == of_folders && !name.string().starts_with('.'))
      names.push_back(std::move(name));
  }
  if (error) {
    throw Invalid(fmt::format(
        "{}: expected a folder of images, found {}", folder.string(),
        error == std::errc::no_such_file_or_directory ? "no such folder" : error.message()));
  }
  std::ranges::sort(names);
  return names;
}

// The place of a file in the order of all.
struct Spread {
  uint64_t numerator;  // of (k + 1/2) / n
  uint64_t denominator;
  ImageFile file;

  bool operator<(const Spread& other) const {
    const uint64_t left = numerator * other.denominator, right = other.numerator * denominator;
    return left != right ? left < right : file.label < other.file.label;
  }
};

}  // namespace

std::vector<fs::path> images_in(const fs::path& folder) {
  std::vector<fs::path> images;
  for (const fs::path& name : names_in(folder, false)) {
    if (has_image_ending(name)) images.push_back(folder / name);
  }
  return images;
}

ImageList list_class_folders(const fs::path& folder) {
  ImageList list;
  std::vector<Spread> spread;
  for (const fs::path& name : names_in(folder, true)) {
    const std::vector<fs::path> images = images_in(folder / name);
    for (size_t k = 0; k < images.size(); ++k) {
      const auto label = static_cast<int32_t>(list.classes.size());
      spread.push_back({2 * k + 1, 2 * images.size(), {images[k], label}});
    }
    list.classes.push_back(name.string());
  }
  if (list.classes.empty()) {
    throw Invalid(fmt::format("{}: expected a folder for each class, found none", folder.string()));
  }
  if (spread.empty()) {
    throw Invalid(
        fmt::format("{}: expected .jpg, .jpeg or .png files in the folders of {} "
                    "classes, found none",
                    folder.string(), list.classes.size()));
  }
  list.label_count = static_cast<int64_t>(list.classes.size());
  std::ranges::sort(spread, std::less<>());
  list.files.reserve(spread.size());
  for (Spread& one : spread) list.files.push_back(std::move(one.file));
  return list;
}

}  // namespace muster::data
