#include "trainer/data/images/box_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trainer/detection/objects.h"

namespace muster::data {

void BoxReport::add(const std::vector<images::Box>& boxes, const images::BoxProblems& problems) {
  boxes_ += boxes.size();
  crowds_ += static_cast<uint64_t>(std::ranges::count_if(boxes, &images::Box::crowd));
  problems_ += problems;
  too_many_ += boxes.size() - std::min(boxes.size(), detection::ObjectList::kMost);
}

void BoxReport::add_file(const records::CocoAnnotations& annotations) {
  problems_ += annotations.problems;
  without_image_ = annotations.without_image;
  first_without_image_ = annotations.first_without_image;
  by_corners_ = annotations.by_corners;
  first_by_corners_ = annotations.first_by_corners;
}

std::string BoxReport::text() const {
  std::vector<std::string> found;
  const auto add = [&](uint64_t count, const std::string& what) {
    if (count > 0) found.push_back(fmt::format("{} {}", count, what));
  };
  add(problems_.not_finite, "left out because they are not finite");
  add(problems_.no_area, "left out because no area of them is within the image");
  add(problems_.far_outside,
      "left out because they reach beyond twice the image, as pixels do where fractions of the "
      "image are expected");
  add(problems_.in_first_pixel,
      "left out because they are within the first pixel, as fractions of the image are where "
      "pixels "
      "are expected");
  add(problems_.outside, "cut at the border of the image");
  add(too_many_,
      fmt::format("left out because an image has room for {}", detection::ObjectList::kMost));
  add(without_image_, "left out because they belong to no image of the file, the first of them " +
                          first_without_image_);
  if (found.empty()) return "";
  const uint64_t all = boxes_ + problems_.not_finite + problems_.no_area + problems_.far_outside +
                       problems_.in_first_pixel + without_image_;
  std::string text = fmt::format("of {} boxes, {}", all, fmt::join(found, ", "));
  if (2 * by_corners_ > all)
    text += fmt::format(
        "; {} fit their images only as [x1, y1, x2, y2], the first of them {}: expected [x, y, "
        "width, height], as COCO has them",
        by_corners_, first_by_corners_);
  return text;
}

}  // namespace muster::data
