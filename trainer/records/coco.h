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
  std::string file_name;
  int64_t height = 0;  // in pixels; 0: the file does not give both height and width
  int64_t width = 0;
  // Labels are the categories' ids. Without height and width, corners are in pixels.
  std::vector<images::Box> boxes;
};

// The images and boxes of a file of COCO annotations ("instances"). Segmentations, licences and
// other fields are skipped. Deviations of other programs with a clear meaning are accepted: numbers
// as texts, ids of images that are texts, true and false for 1 and 0, null for absent values, and
// images without height and width.
struct CocoAnnotations {
  LabelMap categories;
  std::vector<CocoImage> images;  // in the order of the file
  images::BoxProblems problems;
  uint64_t without_image = 0;       // annotations of an image that is not in the file: left out
  std::string first_without_image;  // "annotations[3] (line 7, column 5)"
  // Boxes that reach out of their pictures, and would fit as x1, y1, x2, y2 instead of COCO's x, y,
  // width, height.
  uint64_t by_corners = 0;
  std::string first_by_corners;
  // Names of categories that are no classes of their own, by the list of categories alone. Of
  // several that have one name, that of the smallest id above 0 stands for all. One of id 0 is left
  // out if it is the supercategory of others and its own supercategory is not in the list.
  std::vector<std::string> categories_left_out;

  // Throws Invalid naming `name` and what is wrong where ("annotations[3].bbox", with line and
  // column) for a text that is no JSON or does not have `images`, `annotations` and `categories` as
  // COCO's files do; for an id that occurs twice, for annotations of two categories of one name,
  // for an annotation of a category that is not in the file or is left out as the supercategory of
  // others, and for the path of a file on Windows.
  static CocoAnnotations parse(std::string_view json, const std::string& name);
  // The memory for reading is about three times the file's size, and is freed afterwards.
  static CocoAnnotations read(const std::filesystem::path& path);
};

}  // namespace muster::records
