#include "trainer/data/images/box_report.h"

#include <gtest/gtest.h>

namespace muster::data {
namespace {

std::vector<images::Box> boxes(size_t count, bool crowd = false) {
  return std::vector<images::Box>(count, {.ymax = 1, .xmax = 1, .crowd = crowd});
}

TEST(BoxReport, HasNoneWhereThereAreOnlyCrowds) {
  BoxReport report;
  EXPECT_TRUE(report.has_none());
  report.add(boxes(3, true), {});
  EXPECT_TRUE(report.has_none());
  report.add(boxes(1), {});
  EXPECT_FALSE(report.has_none());
}

TEST(BoxReport, CountsBoxesOfAnotherUnit) {
  BoxReport report;
  report.add(boxes(1), {.far_outside = 2, .in_first_pixel = 3});
  EXPECT_EQ(report.text(),
            "of 6 boxes, 2 left out because they reach beyond twice the image, as pixels do where "
            "fractions of the image are expected, 3 left out because they are within the first "
            "pixel, as fractions of the image are where pixels are expected");
}

TEST(BoxReport, IsEmptyWhereAllBoxesAreOfUse) {
  BoxReport report;
  report.add(boxes(100), {});
  report.add({}, {});
  EXPECT_EQ(report.text(), "");
}

TEST(BoxReport, CountsWhatIsNotLearned) {
  BoxReport report;
  report.add(boxes(3), {.not_finite = 1, .no_area = 2, .outside = 3});
  report.add(boxes(104), {.no_area = 1});
  records::CocoAnnotations annotations;
  annotations.without_image = 5;
  annotations.first_without_image = "annotations[2] (line 7, column 5)";
  report.add_file(annotations);
  EXPECT_EQ(report.text(),
            "of 116 boxes, 1 left out because they are not finite, 3 left out because no area of "
            "them is within the image, 3 cut at the border of the image, 4 left out because an "
            "image has room for 100, 5 left out because they belong to no image of the file, the "
            "first of them annotations[2] (line 7, column 5)");
}

TEST(BoxReport, SaysWhereMostBoxesMayBeCorners) {
  records::CocoAnnotations annotations;
  annotations.problems.outside = annotations.by_corners = 3;
  annotations.first_by_corners = "annotations[0] (line 1, column 2)";
  BoxReport most, few;
  most.add_file(annotations);
  most.add(boxes(5), {});
  EXPECT_EQ(most.text(),
            "of 5 boxes, 3 cut at the border of the image; 3 fit their images only as [x1, y1, x2, "
            "y2], the first of them annotations[0] (line 1, column 2): expected [x, y, width, "
            "height], as COCO has them");
  few.add_file(annotations);
  few.add(boxes(6), {});
  EXPECT_EQ(few.text(), "of 6 boxes, 3 cut at the border of the image");
}

}  // namespace
}  // namespace muster::data
