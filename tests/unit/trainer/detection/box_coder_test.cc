#include "trainer/detection/box_coder.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/trainer/detection/support.h"

namespace muster::detection::testing {
namespace {

TEST(BoxCoder, TellsABoxRelativeToItsAnchor) {
  struct Case {
    std::array<float, 4> box, anchor, codes;
  };
  const std::vector<Case> cases = {
      {{0.1f, 0.2f, 0.5f, 0.4f}, {0.1f, 0.2f, 0.5f, 0.4f}, {0, 0, 0, 0}},
      {{0.2f, 0.1f, 0.6f, 0.5f}, {0.1f, 0.2f, 0.5f, 0.4f}, {2.5f, 0, 0, 3.465736f}},
      {{0, 0, 1, 1}, {0.4f, 0.45f, 0.6f, 0.55f}, {0, 0, 8.047189f, 11.51293f}},
      {{-0.5f, -0.25f, 0.25f, 1.5f},
       {0.25f, 0.25f, 0.75f, 0.75f},
       {-12.5f, 2.5f, 2.027326f, 6.263815f}},
      // ln(1e-8 / 0.5), five times.
      {{0.5f, 0.5f, 0.5f, 0.5f}, {0.25f, 0.25f, 0.75f, 0.75f}, {0, 0, -88.637666f, -88.637666f}},
  };
  for (const Case& one : cases) {
    std::array<float, 4> codes{};
    BoxCoder{}.encode(one.box, one.anchor, codes);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(codes[i], one.codes[i], 2e-5) << i;
  }
}

TEST(BoxCoder, DecodesWhatItEncodes) {
  Random random(2);
  for (const BoxCoder coder : {BoxCoder{}, BoxCoder{1, 2, 3, 4}}) {
    const std::vector<float> boxes = random.boxes(1000), anchors = random.boxes(1000);
    std::vector<float> codes(4000), decoded(4000);
    coder.encode(boxes, anchors, codes);
    coder.decode(codes, anchors, decoded);
    for (size_t i = 0; i < boxes.size(); ++i) ASSERT_NEAR(decoded[i], boxes[i], 2e-5);
  }
}

TEST(BoxCoder, SaysWithNanWhatHasNoCode) {
  const std::array<float, 4> anchor{0, 0, 1, 1}, exchanged{1, 0, 0, 1};
  std::array<float, 4> codes{}, box{};
  BoxCoder{}.encode(exchanged, anchor, codes);
  EXPECT_TRUE(std::isnan(codes[2]));
  const std::array<float, 4> large{0, 0, 1e9f, 0};
  BoxCoder{}.decode(large, anchor, box);
  EXPECT_EQ(box[0], -kInfinity);
  EXPECT_EQ(box[2], kInfinity);
  BoxCoder{}.encode({}, {}, {});
  BoxCoder{}.decode({}, {}, {});
}

}  // namespace
}  // namespace muster::detection::testing
