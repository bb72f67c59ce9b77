#include "trainer/data/images/box_report.h"

#include <gtest/gtest.h>

namespace muster::data {
namespace {

TEST(BoxReport, IsEmptyWhereAllBoxesAreOfUse) {
  BoxReport report;
  report.add(100, {});
  report.add(0, {});
  EXPECT_EQ(report.text(), "");
}

TEST(BoxReport, CountsWhatIsNotLearned) {
  BoxReport report;
  report.add(3, {.not_finite = 1, .no_area = 2, .outside = 3});
  report.add(104, {.no_area = 1});
  report.add_without_image(5);
  EXPECT_EQ(report.text(),
            "of 116 boxes, 1 left out because they are not finite, 3 left out because no area of "
            "them is within the image, 3 cut at the border of the image, 4 left out because an "
            "image has room for 100, 5 left out because they belong to no image of the file");
}

}  // namespace
}  // namespace muster::data
