#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/images/box_report.h"
#include "trainer/images/box.h"

namespace muster::data {

// An image as it is in its source.
struct EncodedImage {
  std::string bytes;  // bytes of the JPEG or PNG
  int32_t label = 0;  // class of the image, if images have classes
  // The image's objects, if images have objects; labels are classes from 0.
  std::vector<images::Box> boxes;
  images::BoxProblems problems;  // problems of the boxes, if they are read with the image
  std::string oddity;            // irregularity of the image, with its name; empty: none
};

// The encoded images of a source, which are read one by one. Thread-safe.
class ImageSet {
 public:
  virtual ~ImageSet() = default;
  virtual uint64_t size() const = 0;
  // Returns the class if it is known without reading the image.
  virtual std::optional<int32_t> known_label(uint64_t image) const = 0;
  // Returns the image's name for messages, with the path of its file.
  virtual std::string name(uint64_t image) const = 0;
  // Returns an upper limit of the image's bytes; 0 if it is not known.
  virtual uint64_t most_bytes(uint64_t image) const = 0;
  // Reads the image into `to`, whose memory is reused. Throws Invalid, which names the file, if it
  // is missing or damaged.
  virtual void read(uint64_t image, EncodedImage& to) const = 0;
  // Returns a report on the boxes of all images, if it is known before images are read; nothing if
  // boxes are read with the images.
  virtual std::optional<BoxReport> boxes() const { return std::nullopt; }
  // Returns a hint on the source's boxes, for messages when no box is usable.
  virtual std::string box_hint() const { return ""; }
};

}  // namespace muster::data
