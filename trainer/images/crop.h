#pragma once

#include <cstddef>
#include <vector>

#include "trainer/images/box.h"
#include "trainer/images/image.h"
#include "trainer/images/random_numbers.h"

namespace muster::images {

// Pixels of an image: rows [top, top + height) and columns [left, left + width).
struct Window {
  size_t top = 0;
  size_t left = 0;
  size_t height = 0;
  size_t width = 0;

  bool operator==(const Window&) const = default;
};

// One of the kinds of crop between which SsdCrop chooses. Aspects and areas must be above 0, areas
// at most 1, and no least value may be above the most.
struct CropKind {
  float least_covered = 0;    // the share of at least one object that the window must cover
  float least_aspect = 0.5f;  // aspect of the window, width / height
  float most_aspect = 2.0f;
  float least_area = 0.1f;  // area of the window, as a share of the image
  float most_area = 1.0f;
  float least_overlap = 0;   // a box stays if at least this share of it is in the window
  float keep_image = 0.15f;  // the probability that the whole image is kept

  bool operator==(const CropKind&) const = default;
};

// The Object Detection API's ssd_random_crop. All kinds are equally likely.
struct SsdCrop {
  std::vector<CropKind> kinds = default_kinds();

  // Seven kinds: at least 0, 0.1, 0.3, 0.5, 0.7, 0.9 and 1 covered, and the same overlap.
  static std::vector<CropKind> default_kinds();
};

// Chooses a window of an image of height x width pixels, and crops the boxes to it; the caller
// crops the pixels (Image::view). The whole image, with all boxes as they are, is one of the
// choices. Like tf.image.sample_distorted_bounding_box it tries 100 windows and takes the first one
// that covers enough of any box; if there is none, the whole image. An image without boxes counts
// as one object.
Window random_crop(const SsdCrop& crop, size_t height, size_t width, std::vector<Box>& boxes,
                   RandomNumbers& numbers);

// Keeps each box with at least the share `least_overlap` of its area within the window, cuts the
// boxes at the window's border, and gives their corners in units of the window. `height` and
// `width` are the image's.
void crop_boxes(std::vector<Box>& boxes, const Window& window, size_t height, size_t width,
                float least_overlap);

}  // namespace muster::images
