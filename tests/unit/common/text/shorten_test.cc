#include "common/text/shorten.h"

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

TEST(CharacterBorderTest, LiesWithinNoCharacter) {
  const std::string text =
      "a\xe2\x82\xac"
      "b";  // a, a euro sign of three bytes, b
  const size_t expected[] = {0, 1, 1, 1, 4, 5};
  for (size_t at = 0; at <= text.size(); ++at)
    EXPECT_EQ(character_border(text, at), expected[at]) << at;
  EXPECT_EQ(character_border(std::string(10, '\x80'), 9), 6u);  // no UTF-8: moved by three at most
}

}  // namespace
}  // namespace muster
