#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/images/box.h"
#include "trainer/records/coco.h"

namespace muster::data {

// Counts the boxes of a data set's images that are not learned or were changed, so that wrong boxes
// do not stay unnoticed. For one thread.
class BoxReport {
 public:
  // Counts an image: its usable boxes, and the problems found when they were read.
  void add(const std::vector<images::Box>& boxes, const images::BoxProblems& problems);
  // Counts what was found when a file of annotations was read. Its usable boxes come by add().
  void add_file(const records::CocoAnnotations& annotations);
  // Whether no box can be learned from. Crowds are not learned.
  bool has_none() const { return boxes_ == crowds_; }
  // Returns all counts that are not zero as words; "" if there are none. Says where most boxes may
  // be x1, y1, x2, y2.
  std::string text() const;

 private:
  images::BoxProblems problems_;
  uint64_t boxes_ = 0, crowds_ = 0, too_many_ = 0, without_image_ = 0, by_corners_ = 0;
  std::string first_without_image_, first_by_corners_;
};

}  // namespace muster::data
