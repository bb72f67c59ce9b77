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

// Decodes parts of JPEGs, one after the other. Outside of the part no pixels are made, but the
// whole file is read, so that damage anywhere is found. Only one thread may use it at a time.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // The request to decode `part`, which must not be empty, of the stored image at 1/divisor (1, 2,
  // 4 or 8) of its size. The pixels are the same to the bit as when the whole image is decoded.
  struct Request {
    JpegHeader header;  // the file's header
    int divisor = 1;
    Window part;
  };
  // Writes rows of RGB, or of CMYK if the header has 4 components, without gaps. Throws Invalid,
  // beginning with `name`, for a damaged file. Returns what is irregular about a file that is
  // decoded completely nevertheless; empty: nothing.
  std::string read(std::span<const std::byte> bytes, std::string_view name, const Request& request,
                   uint8_t* pixels);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::vector<uint8_t> row_;  // one row of the decoded image
};

}  // namespace muster::images
