#include "trainer/images/colour.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/trainer/images/fixture.h"

namespace muster::images {
namespace {

using Json = nlohmann::json;

TEST(Colours, ChangeAsTensorFlowChangesThem) {
  const std::map<std::string, void (*)(std::span<float>, float)> changes = {
      {"brightness", adjust_brightness},
      {"contrast", adjust_contrast},
      {"hue", adjust_hue},
      {"saturation", adjust_saturation}};
  const Json file = Json::parse(fixture("colours.json"));
  for (const Json& row : file["cases"]) {
    auto image = file["from"].get<std::vector<float>>();
    const auto expected = row["pixels"].get<std::vector<float>>();
    changes.at(row["change"])(image, row["amount"]);
    ASSERT_EQ(image.size(), expected.size());
    for (size_t i = 0; i < image.size(); ++i) {
      EXPECT_NEAR(image[i], expected[i], 0.02)
          << row["change"] << " by " << row["amount"] << " value " << i;
    }
  }
}

TEST(Colours, AreDistortedInTheOrderOfTheDetectionApi) {
  const auto original = Json::parse(fixture("colours.json"))["from"].get<std::vector<float>>();
  for (const int order : {0, 1}) {
    std::vector<float> image = original, expected = original;
    ColourDistortion settings;
    settings.order = order;
    // The range of brightness is -0.125 to 0.125: a share of 0.75 is 0.0627.
    Scripted numbers({0.75, 0.25, 1.0, 0.5});
    distort_colour(image, settings, numbers);
    EXPECT_EQ(numbers.taken(), 4u);
    adjust_brightness(expected, -32.0f / 255 + 0.75f * 64 / 255);
    if (order == 0) {
      adjust_saturation(expected, 0.75f);
      adjust_hue(expected, 0.2f);
      adjust_contrast(expected, 1.0f);
    } else {
      adjust_contrast(expected, 0.75f);
      adjust_saturation(expected, 1.5f);
      adjust_hue(expected, 0.0f);
    }
    for (size_t i = 0; i < image.size(); ++i) EXPECT_NEAR(image[i], expected[i], 1e-3);
    EXPECT_NE(image, original);
  }
}

TEST(Colours, StayWithinTheRange) {
  std::vector<float> image = {0, 128, 255, 255, 255, 255, 0, 0, 0};
  adjust_brightness(image, 0.5f);
  adjust_saturation(image, 3.0f);
  adjust_contrast(image, 5.0f);
  adjust_hue(image, -1.0f);
  for (const float value : image) {
    EXPECT_GE(value, 0.0f);
    EXPECT_LE(value, 255.0f);
  }
}

}  // namespace
}  // namespace muster::images
