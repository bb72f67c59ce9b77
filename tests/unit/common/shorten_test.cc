#include "common/shorten.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Shorten, KeepsTheBeginningAndTheEndOfALongText) {
  EXPECT_EQ(shorten("short enough", 12), "short enough");
  const std::string text = "pulling " + std::string(900, 'x') + ": no such host";
  const std::string cut = shorten(text, 100);
  EXPECT_EQ(cut.size(), 100u);
  EXPECT_TRUE(cut.starts_with("pulling x")) << cut;
  EXPECT_TRUE(cut.ends_with("x: no such host")) << cut;
  EXPECT_NE(cut.find("x ... x"), std::string::npos) << cut;
}

TEST(Shorten, CutsNoCharacterInTwo) {
  for (const char* letter : {"\u00fc", "\u20ac", "\U0001f600"}) {
    std::string text;
    while (text.size() < 1000) text += letter;
    for (size_t most = 20; most < 40; ++most) {
      const std::string cut = shorten(text, most);
      EXPECT_LE(cut.size(), most);
      const size_t gap = cut.find(" ... ");
      ASSERT_NE(gap, std::string::npos);
      const size_t length = std::string(letter).size();
      EXPECT_EQ(gap % length, 0u) << cut;
      EXPECT_EQ((cut.size() - gap - 5) % length, 0u) << cut;
    }
  }
  const std::string cut = shorten(std::string(100, '\x80'), 20);
  EXPECT_LE(cut.size(), 20u) << "no UTF-8 is cut all the same";
  EXPECT_NE(cut.find(" ... "), std::string::npos);
}

}  // namespace
}  // namespace muster
