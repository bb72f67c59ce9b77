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
  add(without_image_, "left out because they belong to no image of the file");
  if (found.empty()) return "";
  const uint64_t all = boxes_ + problems_.not_finite + problems_.no_area + problems_.far_outside +
                       problems_.in_first_pixel + without_image_;
  return fmt::format("of {} boxes, {}", all, fmt::join(found, ", "));
}

}  // namespace muster::data
