#pragma once

#include <cstdint>
#include <vector>

namespace muster::images {

// An object in an image. The corners are in units of the image's height and width: (0, 0, 1, 1) is
// the whole image.
struct Box {
  float ymin = 0;
  float xmin = 0;
  float ymax = 0;
  float xmax = 0;
  int32_t label = 0;       // the class's id in the data
  bool crowd = false;      // many objects together, as COCO's iscrowd
  bool difficult = false;  // as Pascal VOC's
  float area = 0;          // the area in the data, in pixels of the image; 0: not given

  float height() const { return ymax - ymin; }
  float width() const { return xmax - xmin; }

  bool operator==(const Box&) const = default;
};

// Numbers of an image's boxes with problems.
struct BoxProblems {
  uint64_t not_finite = 0;  // removed: a corner is infinite or no number
  uint64_t no_area = 0;     // removed: nothing is left within the image, or min is not below max
  uint64_t outside = 0;     // kept: what is outside of the image was cut off
  // Removed, because they have another unit or belong to another image: they reach beyond twice the
  // image, like pixels where fractions are expected; or, the reverse, they are completely in the
  // first pixel.
  uint64_t far_outside = 0;
  uint64_t in_first_pixel = 0;

  BoxProblems& operator+=(const BoxProblems& other);
  bool operator==(const BoxProblems&) const = default;
};

// Keeps the boxes with some area within the image, in their order. A box that reaches over the
// border by less than 1e-6 is cut there but not counted as a problem, because conversions to floats
// cause this.
BoxProblems keep_usable(std::vector<Box>& boxes);

// Moves a box of the stored image to its place after the image is turned by EXIF's orientation,
// from 1 to 8.
void turn(Box& box, int orientation);

}  // namespace muster::images
