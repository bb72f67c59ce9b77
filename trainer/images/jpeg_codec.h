#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/images/crop.h"
#include "trainer/images/jpeg_header.h"

namespace muster::images {

// Decodes parts of JPEGs, one after the other. Outside of the part no pixels are made, but all of
// the file is read, so that damage is found wherever it is. Only one thread may use it at a time.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // What is decoded: `part`, which must not be empty, of the image at 1/divisor (1, 2, 4 or 8) of
  // its size, as it is stored. The pixels are those that decoding all of it gives, to the bit.
  struct Request {
    JpegHeader header;  // of the file
    int divisor = 1;
    Window part;
  };
  // Writes rows of RGB, or of CMYK where the header has 4 components, without gaps. Throws Invalid,
  // which begins with `name`, for a damaged file. Returns what is odd about a file of which every
  // pixel is decoded nevertheless; empty: nothing.
  std::string read(std::span<const std::byte> bytes, std::string_view name, const Request& request,
                   uint8_t* pixels);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::vector<uint8_t> row_;  // one of the image, as wide as it is decoded
};

}  // namespace muster::images
