#pragma once

#include "trainer/data/images/image_files.h"

namespace muster::data {

// Lists a folder that has a folder of images for each class. The classes are in the order of their
// names' bytes, and so are the files of a class. File k of a class of n has its place in the order
// of all at (k + 1/2) / n, so that every part of it has each class in its proportion. Reads no
// file. A folder __MACOSX, which archives of macOS bring along, is no class. Throws Invalid naming
// the folder if there are no classes or no images, or if it cannot be read.
ImageList list_class_folders(const std::filesystem::path& folder);

// Returns the image files in a folder itself, sorted by the bytes of their names; without those
// that begin with a dot. `passed_over`, if given, receives what else is there, as words. Throws
// Invalid naming the folder if it cannot be read.
std::vector<std::filesystem::path> images_in(const std::filesystem::path& folder,
                                             std::string* passed_over = nullptr);

}  // namespace muster::data
