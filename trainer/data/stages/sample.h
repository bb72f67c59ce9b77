#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/images/image_reader.h"
#include "trainer/data/images/image_set.h"
#include "trainer/detection/objects.h"

namespace muster::data {

// A sample between two stages. Its memory is kept from one sample to the next. An image from a file
// is encoded before make_pixels(), and has 3 channels after it.
struct Sample {
  std::vector<int64_t> shape;  // height, width and, with three axes, channels
  size_t element_bytes = 1;
  std::vector<std::byte> features;  // the elements, in C order
  std::vector<std::byte> scratch;   // for a stage that cannot work in place
  std::vector<float> floats;        // for a stage that works on floats
  EncodedImage encoded;             // used by data sets that read a file for each use
  // The objects in the image, if the data set has objects. A stage that moves pixels also moves the
  // boxes.
  std::vector<images::Box> boxes;
  std::vector<detection::Object> objects;  // used by data sets that make a target of the boxes
  images::ImageSize original;              // size of the encoded image in pixels
  int32_t label = 0;                       // label of the encoded image
  std::string oddity;                      // irregularity of the image, with its name; empty: none

  // Begins with an encoded image, which must live until make_pixels() and is to become a sample of
  // this size; `grey`: with one channel. Like make_pixels(), throws Invalid, beginning with `name`,
  // for a damaged image.
  void begin(std::span<const std::byte> image, const images::Name& name, size_t rows,
             size_t columns, bool grey);
  // Decodes the image, if it is still encoded.
  void make_pixels();
  // Exchanges left and right; if the image is still encoded, after it is decoded. The caller must
  // flip the boxes.
  void mirror();
  // Reduces the image to a part: of the encoded image, or of the pixels, which are resized to the
  // old size. The caller must crop the boxes.
  void crop(const images::Window& part);
  // Returns the size in which crop() sees the image.
  images::ImageSize size_to_crop() const;
  // Writes the features in the form that the model takes.
  void write(std::byte* out) const;

  size_t height() const { return static_cast<size_t>(shape[0]); }
  size_t width() const { return static_cast<size_t>(shape[1]); }
  size_t pixel_bytes() const {
    return element_bytes * (shape.size() > 2 ? static_cast<size_t>(shape[2]) : 1);
  }

 private:
  std::unique_ptr<ImageReader> reader_;  // null: no image has been encoded so far
  bool is_encoded_ = false;
  bool is_mirrored_ = false;  // whether make_pixels() has to mirror
  bool is_grey_ = false;      // whether one channel is wanted
};

}  // namespace muster::data
