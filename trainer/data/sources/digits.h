#pragma once

#include <cstdint>
#include <filesystem>

namespace muster::data {

// A small set for detectors: digits of MNIST on canvases, with the boxes around them.
struct DigitsOptions {
  std::filesystem::path images, labels;     // IDX files, plain or gzip
  std::filesystem::path output;             // folder; created if it does not exist
  uint64_t train = 2000, validation = 400;  // numbers of canvases
  uint64_t size = 96;                       // height and width of a canvas in pixels
  uint64_t most_digits = 4;                 // most digits on a canvas; there is at least one
  uint64_t shards = 4;                      // number of TFRecord shards for training
  uint64_t seed = 1;
};

// Writes, below `output`:
//   train-00000-of-00004.tfrecord and so on, validation-00000-of-00001.tfrecord: tf.train.Examples
//     of the TF Object Detection API;
//   label_map.pbtxt: ids 1 to 10 of the digits 0 to 9;
//   coco/train.json and coco/validation.json with the images in coco/train and coco/validation: the
//     same canvases in COCO's format.
// Canvases for training show the first five sixths of the digits, canvases for validation the
// others. The records and images of an earlier call are removed first; a label_map.pbtxt shows that
// there was an earlier call. The same options give the same bytes. Throws Invalid for files that
// cannot be read and (kUsage) for options out of range, and WriteError.
void make_digits(const DigitsOptions& options);

}  // namespace muster::data
