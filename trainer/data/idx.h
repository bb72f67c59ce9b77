#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/byte_stream.h"
#include "trainer/data/selection.h"
#include "trainer/data/storage.h"

namespace muster::data {

// IDX, the format of MNIST's files: two zero bytes, the element type (0x08: unsigned byte, the only
// one read), the number of dimensions, each dimension as a big-endian u32, then the elements in C
// order. http://yann.lecun.com/exdb/mnist

struct IdxImages {
  uint64_t samples_in_file = 0;
  std::vector<int64_t> shape;  // of one sample
  uint64_t first = 0;          // selected sample, of the file
  uint64_t count = 0;          // selected samples
  Storage pixels;              // of these
};

struct IdxLabels {
  std::vector<uint8_t> labels;  // of the whole file
  int largest = 0;
};

// The header of images alone.
struct IdxShape {
  uint64_t samples = 0;
  std::vector<int64_t> sample;
};
IdxShape read_idx_shape(ByteStream& stream);

// Throws Invalid where there is not one label for each image.
void require_as_many(const IdxLabels& labels, const std::string& labels_name, uint64_t images,
                     const std::string& images_name);

// Read a stream to its end; of images only the selection is kept. Throw Invalid naming file, byte,
// expected and found: no IDX, labels where images are meant (and the reverse), another element
// type, dimensions that the file cannot hold, truncation, bytes too many, a selection beyond the
// end. Memory is allocated only for what the file's size makes possible.
IdxImages read_idx_images(ByteStream& stream, const Selection& selection,
                          StorageKind kind = StorageKind::memory);
IdxLabels read_idx_labels(ByteStream& stream);

// Reads images to their end and keeps none. Throws as above.
void skip_idx_images(ByteStream& stream);

}  // namespace muster::data
