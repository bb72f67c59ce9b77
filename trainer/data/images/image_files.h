#pragma once

#include <filesystem>
#include <vector>

#include "trainer/data/files/selection.h"
#include "trainer/data/images/image_set.h"

namespace muster::data {

struct ImageFile {
  std::filesystem::path path;
  int32_t label = 0;

  bool operator==(const ImageFile&) const = default;
};

// The files that a source names, in the order of its samples.
struct ImageList {
  std::vector<std::string> classes;  // names of the classes; empty: labels are numbers
  int64_t label_count = 0;
  std::vector<ImageFile> files;
  std::string passed_over;  // description of entries that are not used; empty: none
};

inline constexpr const char* kImageEndings = ".jpg, .jpeg, .jpe, .jfif or .png";
// Returns a name's ending in small letters, ".jpg"; empty if it has none.
std::string ending_of(const std::filesystem::path& path);
// Whether the name has one of kImageEndings, in small letters or capitals.
bool has_image_ending(const std::filesystem::path& path);

// Returns the number of bytes of a file; 0 if it cannot be found out.
uint64_t file_bytes(const std::filesystem::path& path);
// Returns the content of an image file. Throws Invalid naming it if it cannot be read or is larger
// than any image.
std::string read_image_file(const std::filesystem::path& path);

// Images in separate files.
class ImageFiles : public ImageSet {
 public:
  explicit ImageFiles(std::vector<ImageFile> files) : files_(std::move(files)) {}

  uint64_t size() const override { return files_.size(); }
  std::optional<int32_t> known_label(uint64_t image) const override { return files_[image].label; }
  std::string name(uint64_t image) const override { return files_[image].path.string(); }
  uint64_t most_bytes(uint64_t image) const override { return file_bytes(files_[image].path); }
  void read(uint64_t image, EncodedImage& to) const override;

 private:
  std::vector<ImageFile> files_;
};

}  // namespace muster::data
