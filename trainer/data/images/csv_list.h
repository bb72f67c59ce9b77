#pragma once

#include "trainer/data/images/image_files.h"
#include "trainer/spec/data_source.h"

namespace muster::data {

// Reads the list of an imageCsv source: lines `path,label`; the first line may be a header. Reads
// no image. Throws Invalid naming the list, the line, what was expected and what was found, and if
// the list names no image.
ImageList read_csv_list(const spec::ImageCsvSource& source);

// Does the same for the text of a list; `name` is its name in messages.
ImageList parse_csv_list(std::string_view text, const spec::ImageCsvSource& source,
                         const std::string& name);

}  // namespace muster::data
