#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/images/box.h"
#include "trainer/records/label_map.h"

namespace muster::records {

struct CocoImage {
  int64_t id = 0;
  std::string file_name;
  int64_t height = 0;  // in pixels
  int64_t width = 0;
  std::vector<images::Box> boxes;  // labels are the categories' ids
};

// The images and boxes of a file of COCO annotations ("instances"). Segmentations, licences and
// whatever else it has are passed over.
struct CocoAnnotations {
  LabelMap categories;
  std::vector<CocoImage> images;  // in the order of the file
  images::BoxProblems problems;
  uint64_t without_image = 0;  // annotations of an image that is not in the file: left out

  // Throws Invalid naming `name` and what is wrong where ("annotations[3].bbox") for a text that is
  // no JSON or does not have `images`, `annotations` and `categories` as COCO's files do; for an id
  // that occurs twice, and for an annotation of a category that is not in the file.
  static CocoAnnotations parse(std::string_view json, const std::string& name);
  // The memory for reading is about three times the file's size, and is freed afterwards.
  static CocoAnnotations read(const std::filesystem::path& path);
};

}  // namespace muster::records
