#include "trainer/supervise/last_line.h"

#include <gtest/gtest.h>

namespace muster::supervise {
namespace {

std::string last_of(const std::vector<std::string>& pieces) {
  LastLine line;
  for (const std::string& piece : pieces) line.add(piece);
  return line.text();
}

TEST(LastLine, IsTheLastThatIsNotBlank) {
  EXPECT_EQ(last_of({}), "");
  EXPECT_EQ(last_of({"one\n"}), "one");
  EXPECT_EQ(last_of({"one\ntwo\n\n \t\r\n"}), "two");
  EXPECT_EQ(last_of({"one\n  two"}), "two");
}

TEST(LastLine, TextMayComeInAnyPieces) {
  const std::string text = "one\n two\n\nthree \n\n";
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(last_of({text.substr(0, cut), text.substr(cut)}), "three ") << cut;
}

TEST(LastLine, OfALongOneTheBeginningIsKept) {
  const std::string text = last_of({std::string(1'000'000, 'x'), "y\n"});
  EXPECT_EQ(text, std::string(LastLine::kMost, 'x'));
  EXPECT_EQ(last_of({std::string(1'000'000, 'x'), "\nshort\n"}), "short");
}

}  // namespace
}  // namespace muster::supervise
