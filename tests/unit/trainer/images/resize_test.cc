#include "trainer/images/resize.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"
#include "tests/unit/trainer/images/fixture.h"

namespace muster::images {
namespace {

using Json = nlohmann::json;

Image source(const Json& file) {
  Image image;
  image.resize(file["height"], file["width"]);
  image.pixels = file["from"].get<std::vector<uint8_t>>();
  return image;
}

TEST(Resizer, MakesThePixelsThatTensorFlowMakes) {
  const Json file = Json::parse(fixture("resize.json"));
  const Image image = source(file);
  Resizer resizer;
  for (const Json& row : file["cases"]) {
    const size_t height = row["height"], width = row["width"];
    const auto expected = row["pixels"].get<std::vector<float>>();
    Image resized;
    resizer.resize(image.view(), height, width, resized);
    ASSERT_EQ(resized.pixels.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)  // rounded
      EXPECT_NEAR(resized.pixels[i], expected[i], 0.502)
          << height << "x" << width << " value " << i;
  }
}

TEST(Resizer, ResizesAPartAsIfItWereAnImage) {
  const Image image = source(Json::parse(fixture("resize.json")));
  Image part;
  part.resize(4, 5);
  for (size_t y = 0; y < 4; ++y) std::copy_n(image.row(y + 2) + 3 * 3, 5 * 3, part.row(y));
  Resizer resizer;
  Image of_part, of_view;
  resizer.resize(part.view(), 9, 8, of_part);
  resizer.resize(image.view(2, 3, 4, 5), 9, 8, of_view);
  EXPECT_EQ(of_view.pixels, of_part.pixels);
}

}  // namespace
}  // namespace muster::images
