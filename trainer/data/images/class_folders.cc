#include "trainer/data/images/class_folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "common/error.h"

namespace muster::data {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMacArchive = "__MACOSX";

// The names in a folder, sorted by their bytes; without those that begin with a dot.
struct Names {
  std::vector<fs::path> files, folders;
};

Names names_in(const fs::path& folder) {
  Names names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    fs::path name = entry->path().filename();
    if (name.string().starts_with('.')) continue;
    std::error_code unknown;
    auto& list = entry->is_directory(unknown) ? names.folders : names.files;
    list.push_back(std::move(name));
  }
  if (error) {
    throw Invalid(fmt::format(
        "{}: expected a folder of images, found {}", folder.string(),
        error == std::errc::no_such_file_or_directory ? "no such folder" : error.message()));
  }
  std::ranges::sort(names.files);
  std::ranges::sort(names.folders);
  return names;
}

// Counts the entries of folders of images that are not used, by their kind.
class PassedOver {
 public:
  void add(const std::string& kind, uint64_t count = 1) {
    if (count > 0) counts_[kind] += count;
  }
  // Counts files that are not images, by their endings, and the entries of folders beside the
  // images.
  void add_other_than_images(const fs::path& folder, const Names& names) {
    for (const fs::path& name : names.files) {
      if (has_image_ending(name)) continue;
      const std::string ending = ending_of(name);
      add(ending.empty() ? "without an ending" : ending);
    }
    for (const fs::path& name : names.folders) add_deeper(folder / name);
  }
  // Returns "3 .webp, 1 in deeper folders"; "" if there is nothing.
  std::string text() const {
    std::vector<std::string> kinds;
    for (const auto& [kind, count] : counts_) kinds.push_back(fmt::format("{} {}", count, kind));
    return fmt::format("{}", fmt::join(kinds, ", "));
  }

 private:
  void add_deeper(const fs::path& folder) {
    std::error_code error;  // its value is not used
    uint64_t images = 0;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
      images += has_image_ending(entry->path()) ? 1 : 0;
    add("in a folder one level deeper", images);
  }

  std::map<std::string, uint64_t> counts_;
};

// The place of a file in the whole order.
struct Spread {
  uint64_t numerator;  // numerator of (k + 1/2) / n
  uint64_t denominator;
  ImageFile file;

  bool operator<(const Spread& other) const {
    const uint64_t left = numerator * other.denominator, right = other.numerator * denominator;
    return left != right ? left < right : file.label < other.file.label;
  }
};

std::vector<fs::path> images_of(const fs::path& folder, const Names& names) {
  std::vector<fs::path> images;
  for (const fs::path& name : names.files)
    if (has_image_ending(name)) images.push_back(folder / name);
  return images;
}

}  // namespace

std::vector<fs::path> images_in(const fs::path& folder, std::string* passed_over) {
  const Names names = names_in(folder);
  if (passed_over != nullptr) {
    PassedOver others;
    others.add_other_than_images(folder, names);
    *passed_over = others.text();
  }
  return images_of(folder, names);
}

ImageList list_class_folders(const fs::path& folder) {
  ImageList list;
  std::vector<Spread> spread;
  PassedOver others;
  const Names top = names_in(folder);
  others.add("beside the folders of the classes", top.files.size());
  for (const fs::path& name : top.folders) {
    if (name == kMacArchive) {
      others.add("folder __MACOSX");
      continue;
    }
    const Names names = names_in(folder / name);
    others.add_other_than_images(folder / name, names);
    const std::vector<fs::path> images = images_of(folder / name, names);
    for (size_t k = 0; k < images.size(); ++k) {
      const auto label = static_cast<int32_t>(list.classes.size());
      spread.push_back({2 * k + 1, 2 * images.size(), {images[k], label}});
    }
    list.classes.push_back(name.string());
  }
  list.passed_over = others.text();
  if (list.classes.empty()) {
    throw Invalid(fmt::format("{}: expected a folder for each class, found none", folder.string()));
  }
  if (spread.empty()) {
    throw Invalid(
        fmt::format("{}: expected {} files in the folders of {} classes, found {}", folder.string(),
                    kImageEndings, list.classes.size(),
                    list.passed_over.empty() ? "none" : "only others: " + list.passed_over));
  }
  list.label_count = static_cast<int64_t>(list.classes.size());
  std::ranges::sort(spread, std::less<>());
  list.files.reserve(spread.size());
  for (Spread& one : spread) list.files.push_back(std::move(one.file));
  return list;
}

}  // namespace muster::data
