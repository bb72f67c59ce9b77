#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/files/byte_stream.h"

namespace muster::data {

// IDX, the format of MNIST's files: two zero bytes, the element type (0x08: unsigned byte, the only
// one read), the number of dimensions, each dimension as a big-endian u32, then the elements in C
// order. http://yann.lecun.com/exdb/mnist

// The content of the header of images.
struct IdxShape {
  uint64_t samples = 0;
  std::vector<int64_t> sample;
  bool operator==(const IdxShape&) const = default;
};

struct IdxLabels {
  std::vector<uint8_t> labels;
  int largest = 0;
};

// Reads the header of images and no further. Throws Invalid naming file, byte, expected and found:
// not IDX, labels instead of images, another element type, dimensions that the file cannot hold.
IdxShape read_idx_shape(ByteStream& stream);

// Throws Invalid unless there is one label for each image.
void require_as_many(const IdxLabels& labels, const std::string& labels_name, uint64_t images,
                     const std::string& images_name);

// Reads images to the end of the file. `pixels` receives sample `first` and the samples after it,
// as many as fit. Precondition: the file has them, by its header `shape` from read_idx_shape().
// Throws Invalid like read_idx_shape(), for truncation and extra bytes, and if the header has
// changed meanwhile.
void read_idx_images(ByteStream& stream, const IdxShape& shape, uint64_t first,
                     std::span<std::byte> pixels);

// Reads images to the end of the file and keeps none. Throws the same errors as read_idx_images().
void skip_idx_images(ByteStream& stream);

// Reads labels to the end of the file. Throws the same errors. Allocates no more memory than the
// file's size allows.
IdxLabels read_idx_labels(ByteStream& stream);

}  // namespace muster::data
