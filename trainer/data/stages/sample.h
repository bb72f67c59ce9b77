#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/images/image_reader.h"
#include "trainer/data/images/image_set.h"

namespace muster::data {

// A sample between two stages. Its memory is kept from one sample to the next. An image from a file
// is encoded before make_pixels(), and has 3 channels after it.
struct Sample {
  std::vector<int64_t> shape;  // height, width and, where there are three axes, channels
  size_t element_bytes = 1;
  std::vector<std::byte> features;  // the elements, in C order
  std::vector<std::byte> scratch;   // for a stage that cannot work in place
  std::vector<float> floats;        // for a stage that works on floats
  EncodedImage encoded;             // for a data set that reads a file for each use
  // The objects that the image shows, if the data set has objects; a stage that moves pixels moves
  // them as well.
  std::vector<images::Box> boxes;
  images::ImageSize original;  // of the encoded image, in pixels
  int32_t label = 0;           // of the encoded image
  std::string oddity;          // what is irregular about it, with its name; empty: nothing

  // Begins with an encoded image (which must live until make_pixels()), of which a sample of this
  // size is to be made; `grey`: of one channel. Throws Invalid, which begins with `name`, for one
  // that is damaged; so does make_pixels().
  void begin(std::span<const std::byte> image, std::string_view name, size_t rows, size_t columns,
             bool grey);
  // Decodes the image, if it is still encoded.
  void make_pixels();
  // Exchanges left and right: of an image that is still encoded once it is decoded. The boxes are
  // the caller's to flip.
  void mirror();
  // Leaves a part of the image: of the encoded one, or of the pixels, which keep their size. The
  // boxes are the caller's to crop.
  void crop(const images::Window& part);
  // Returns the size in which crop() sees the image.
  images::ImageSize size_to_crop() const;
  // Writes the features as the model takes them.
  void write(std::byte* out) const;

  size_t height() const { return static_cast<size_t>(shape[0]); }
  size_t width() const { return static_cast<size_t>(shape[1]); }
  size_t pixel_bytes() const {
    return element_bytes * (shape.size() > 2 ? static_cast<size_t>(shape[2]) : 1);
  }

 private:
  std::unique_ptr<ImageReader> reader_;  // null: no image has been encoded so far
  bool is_encoded_ = false;
  bool is_mirrored_ = false;  // to be done by make_pixels()
  bool is_grey_ = false;      // wanted
};

}  // namespace muster::data
