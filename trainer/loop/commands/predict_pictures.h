#pragma once

#include <filesystem>
#include <vector>

#include "common/documents/document.h"
#include "trainer/loop/evaluation/draw_objects.h"

namespace muster::loop {

struct PictureOptions {
  std::vector<std::filesystem::path> pictures;  // JPEG and PNG, and folders of them
  std::filesystem::path from;                   // the folder that relative paths refer to
  // The folder for copies of the pictures, as PNG, with the result drawn in them; empty: no copies.
  // An existing file is not replaced.
  std::filesystem::path drawn;
  float least_score = kLeastScore;  // lowest score of an object
  size_t most_classes = 5;          // most classes of a classification, by falling probability
};

// `muster-trainer predict` with pictures. The pictures are made into samples in the same way as the
// data of the model's training. `where` is as for load_model(). No data of the training are needed,
// unless an earlier version of Muster wrote the model. Returns {"checkpoint" or "model",
// "predictions"} with an object for each picture:
//   of a classification {"picture", "class", "probability", "classes": [{"class", "label",
//     "probability"}]}
//   of a detector {"picture", "height", "width", "objects": [{"class", "label", "score", "box":
//     {"xmin", "ymin", "xmax", "ymax"}}]}: boxes are in pixels of the picture, turned as its EXIF
//     data say
//   {"picture", "error"} for one that is missing or damaged, which is also logged
// and "drawn", the path of the copy. Throws Invalid for a model that does not take pictures and a
// folder without any, and WriteError.
Json predict_pictures(const std::filesystem::path& where, const PictureOptions& options);

}  // namespace muster::loop
