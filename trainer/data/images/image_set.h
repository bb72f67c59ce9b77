#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/images/box_report.h"
#include "trainer/images/box.h"

namespace muster::data {

// An image as its source has it.
struct EncodedImage {
  std::string bytes;               // of the JPEG or PNG
  int32_t label = 0;               // its class, where images have one
  std::vector<images::Box> boxes;  // its objects, where images have them; labels are classes from 0
  images::BoxProblems problems;    // of the boxes, where they are read with the image
  std::string oddity;              // what is irregular, with the image's name; empty: nothing
};

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
  // Reads the image into memory that is used again. Throws Invalid, which names the file, if it is
  // missing or damaged.
  virtual void read(uint64_t image, EncodedImage& to) const = 0;
  // Returns what is known of all images' boxes before they are read; nothing if they are read with
  // the images.
  virtual std::optional<BoxReport> boxes() const { return std::nullopt; }
  // Returns what to know of the source's boxes where none can be used.
  virtual std::string box_hint() const { return ""; }
};

}  // namespace muster::data
