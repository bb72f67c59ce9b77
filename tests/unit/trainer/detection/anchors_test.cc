#include "trainer/detection/anchors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "common/error.h"
#include "trainer/detection/box.h"

namespace muster::detection::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::vector<FeatureMap> kMaps300 = {{19, 19}, {10, 10}, {5, 5}, {3, 3}, {2, 2}, {1, 1}};

void expect_box(std::span<const float> boxes, size_t index, const std::array<float, 4>& expected) {
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(boxes[4 * index + i], expected[i], 2e-6) << "anchor " << index << ", border " << i;
}

// The numbers are of a script of NumPy, which computed with float64.
TEST(Anchors, AreThoseOfSsdMobilenetV1) {
  EXPECT_THAT(anchors_per_cell({}), ElementsAre(3, 6, 6, 6, 6, 6));
  const std::vector<float> anchors = ssd_anchors({}, kMaps300, 300, 300);
  ASSERT_EQ(box_count(anchors), 1917u);
  const std::vector<std::pair<size_t, std::array<float, 4>>> expected = {
      {0, {-0.02368421f, -0.02368421f, 0.07631579f, 0.07631579f}},
      {1, {-0.04439489f, -0.1151056f, 0.09702647f, 0.1677371f}},
      {2, {-0.1151056f, -0.04439489f, 0.1677371f, 0.09702647f}},
      {3, {-0.02368421f, 0.02894737f, 0.07631579f, 0.1289474f}},
      {1082, {0.8322629f, 0.9029735f, 1.115106f, 1.044395f}},
      {1083, {-0.125f, -0.125f, 0.225f, 0.225f}},
      {1084, {-0.07374369f, -0.1974874f, 0.1737437f, 0.2974874f}},
      {1087, {-0.253124f, -0.05103125f, 0.353124f, 0.1510312f}},
      {1088, {-0.159165f, -0.159165f, 0.259165f, 0.259165f}},
      {1089, {-0.125f, -0.025f, 0.225f, 0.325f}},
      {1682, {0.740835f, 0.740835f, 1.159165f, 1.159165f}},
      {1683, {-0.15f, -0.15f, 0.35f, 0.35f}},
      {1833, {-0.1583333f, -0.1583333f, 0.4916667f, 0.4916667f}},
      {1887, {-0.15f, -0.15f, 0.65f, 0.65f}},
      {1911, {0.025f, 0.025f, 0.975f, 0.975f}},
      {1912, {0.1641243f, -0.1717514f, 0.8358757f, 1.171751f}},
      {1915, {-0.3227653f, 0.2257723f, 1.322765f, 0.7742277f}},
      {1916, {0.01266028f, 0.01266028f, 0.9873397f, 0.9873397f}},
  };
  for (const auto& [index, box] : expected) expect_box(anchors, index, box);
  std::array<double, 4> sums{};
  for (size_t i = 0; i < anchors.size(); ++i) sums[i % 4] += static_cast<double>(anchors[i]);
  EXPECT_NEAR(sums[0], 674.21611224, 1e-3);
  EXPECT_NEAR(sums[1], 674.21943221, 1e-3);
  EXPECT_NEAR(sums[2], 1242.78388776, 1e-3);
  EXPECT_NEAR(sums[3], 1242.78056779, 1e-3);
}

TEST(Anchors, FollowAllSettings) {
  SsdAnchorSettings settings;
  settings.num_layers = 2;
  settings.scales = {0.3f, 0.6f};
  settings.aspect_ratios = {1, 2};
  settings.interpolated_scale_aspect_ratio = 0;
  settings.base_anchor_height = 1.5f;
  settings.base_anchor_width = 0.5f;
  settings.reduce_boxes_in_lowest_layer = false;
  const std::vector<FeatureMap> maps = {{2, 3}, {1, 1}};
  // An image that is twice as wide as high, and a grid that is not square.
  const std::vector<float> anchors = ssd_anchors(settings, maps, 200, 400);
  ASSERT_EQ(box_count(anchors), 14u);
  expect_box(anchors, 0, {0.025f, 0.1291667f, 0.475f, 0.2041667f});
  expect_box(anchors, 1, {0.090901f, 0.1136337f, 0.409099f, 0.2196997f});
  expect_box(anchors, 2, {0.025f, 0.4625f, 0.475f, 0.5375f});
  expect_box(anchors, 6, {0.525f, 0.1291667f, 0.975f, 0.2041667f});
  expect_box(anchors, 11, {0.590901f, 0.7803003f, 0.909099f, 0.8863663f});
  expect_box(anchors, 12, {0.05f, 0.425f, 0.95f, 0.575f});
  expect_box(anchors, 13, {0.1818019f, 0.393934f, 0.8181981f, 0.606066f});
}

TEST(Anchors, OfASingleLayerHaveTheLeastScale) {
  SsdAnchorSettings settings;
  settings.num_layers = 1;
  settings.reduce_boxes_in_lowest_layer = false;
  settings.aspect_ratios = {1};
  settings.interpolated_scale_aspect_ratio = 0;
  const std::vector<FeatureMap> maps = {{1, 1}};
  expect_box(ssd_anchors(settings, maps, 1, 1), 0, {0.4f, 0.4f, 0.6f, 0.6f});
}

TEST(Anchors, SettingsThatMakeNoneAreRefused) {
  struct Case {
    const char* message;
    void (*change)(SsdAnchorSettings&);
  };
  const std::vector<Case> cases = {
      {"num_layers must be 1 or more, but is 0", [](auto& s) { s.num_layers = 0; }},
      {"scales for each of 6 layers, but there are 2",
       [](auto& s) {
         s.scales = {0.1f, 0.2f};
       }},
      {"min_scale must be a number above 0, but is -1", [](auto& s) { s.min_scale = -1; }},
      {"max_scale must be a number above 0, but is nan", [](auto& s) { s.max_scale = NAN; }},
      {"aspect_ratios must be a number above 0, but is 0", [](auto& s) { s.aspect_ratios = {0}; }},
      {"interpolated_scale_aspect_ratio must be a number above 0",
       [](auto& s) { s.interpolated_scale_aspect_ratio = -2; }},
      {"base_anchor_height must be", [](auto& s) { s.base_anchor_height = 0; }},
      {"base_anchor_width must be", [](auto& s) { s.base_anchor_width = INFINITY; }},
      {"there is neither",
       [](auto& s) {
         s.aspect_ratios.clear();
         s.interpolated_scale_aspect_ratio = 0;
       }},
      {"for each of 5 layers, but there are 6", [](auto& s) { s.num_layers = 5; }},
  };
  for (const Case& one : cases) {
    SsdAnchorSettings settings;
    one.change(settings);
    EXPECT_THAT([&] { ssd_anchors(settings, kMaps300, 300, 300); },
                ThrowsMessage<Invalid>(HasSubstr(one.message)));
  }
  EXPECT_THROW(ssd_anchors({}, kMaps300, 0, 300), Invalid);
  std::vector<FeatureMap> maps = kMaps300;
  maps[3].width = 0;
  EXPECT_THAT([&] { ssd_anchors({}, maps, 300, 300); },
              ThrowsMessage<Invalid>(HasSubstr("feature map 3")));
}

}  // namespace
}  // namespace muster::detection::testing
