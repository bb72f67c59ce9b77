#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::data {

// The encoded images of a source, each of which is read by itself. Any thread may use it.
class ImageSet {
 public:
  virtual ~ImageSet() = default;
  virtual uint64_t size() const = 0;
  // Returns the class if it is known without reading the image.
  virtual std::optional<int32_t> known_label(uint64_t image) const = 0;
  // Returns the image's name for messages, with the path of its file.
  virtual std::string name(uint64_t image) const = 0;
  // Returns how many bytes the image has at most; 0 if that is not known.
  virtual uint64_t most_bytes(uint64_t image) const = 0;
  // Reads the bytes of the file that the image once was, and returns its class. Throws Invalid,
  // which names the file, if they are missing or damaged.
  virtual int32_t read(uint64_t image, std::string& bytes) const = 0;
};

}  // namespace muster::data
