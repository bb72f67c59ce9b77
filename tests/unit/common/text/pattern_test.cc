#include "common/text/pattern.h"

#include "common/error.h"
#include "gmock/gmock.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(Pattern, MatchesAnyPartUnlessTiedToTheEnds) {
  EXPECT_TRUE(Pattern("Conv").matches("my/Conv2d_0/kernel"));
  EXPECT_FALSE(Pattern("^Conv").matches("my/Conv2d_0/kernel"));
  EXPECT_TRUE(Pattern("^Conv2d_[0-3]$").matches("Conv2d_3"));
  EXPECT_FALSE(Pattern("^Conv2d_[0-3]$").matches("Conv2d_30"));
}

TEST(Pattern, SaysWhatIsWrongWithAnExpression) {
  EXPECT_THAT([] { Pattern("a(b"); },
              ThrowsMessage<Invalid>(HasSubstr("expected a regular expression, found \"a(b\"")));
}

TEST(Pattern, TakesNoLongerForAnExpressionThatOthersBacktrackOn) {
  EXPECT_FALSE(Pattern("^(a+)+$").matches(std::string(100'000, 'a') + "b"));
}

TEST(Pattern, SaysWhichReplacementsItCannotMake) {
  EXPECT_THAT(Pattern("a(b)").flaw_of("\\1"), IsEmpty());
  EXPECT_THAT(Pattern("a(b)").flaw_of("\\2"), HasSubstr("subexpressions"));
  EXPECT_THAT(
      [] {
        Renames(std::vector<Rename>{{"a", "\\1"}});
      },
      ThrowsMessage<Invalid>(HasSubstr("expected a replacement for \"a\"")));
}

TEST(Patterns, MatchIfOneDoes) {
  EXPECT_TRUE(Patterns({"x", "^b"}).match("box"));
  EXPECT_FALSE(Patterns({"y", "^o"}).match("box"));
  EXPECT_FALSE(Patterns().match("box"));
}

TEST(Renames, AreMadeOneAfterTheOther) {
  const Renames renames(
      std::vector<Rename>{{"^features/(.*)", "\\1"}, {"/weights$", "/kernel"}, {"none", "other"}});
  EXPECT_EQ(renames.apply("features/Conv/weights"), "Conv/kernel");
  EXPECT_EQ(renames.apply("head/bias"), "head/bias");
}

}  // namespace
}  // namespace muster
