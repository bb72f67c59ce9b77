#pragma once

#include "trainer/data/images/image_files.h"

namespace muster::data {

// Lists a folder that has a folder of images for each class. The classes are in the order of their
// names' bytes, and so are the files of a class. File k of a class with n files is placed at (k +
// 1/2) / n of the whole order, so that every part of the order has each class in proportion. Reads
// no file. A folder __MACOSX, which archives from macOS contain, is not a class. Throws Invalid
// naming the folder if there are no classes or no images, or if it cannot be read.
ImageList list_class_folders(const std::filesystem::path& folder);

// Returns the image files directly in a folder, sorted by the bytes of their names, without names
// that begin with a dot. `passed_over`, if given, receives a description of the other entries.
// Throws Invalid naming the folder if it cannot be read.
std::vector<std::filesystem::path> images_in(const std::filesystem::path& folder,
                                             std::string* passed_over = nullptr);

}  // namespace muster::data
