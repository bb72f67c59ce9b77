#include "operator/kube/api/json_parts.h"

#include <gmock/gmock.h>

#include "common/error.h"

namespace muster::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> parts(std::string_view json) {
  std::vector<std::string> result;
  for (const JsonPart& part : parts_of(json)) {
    std::string text(part.key);
    result.push_back(text + "=" + std::string(part.text));
  }
  return result;
}

TEST(JsonParts, AreFoundByBracketsAndQuotes) {
  EXPECT_THAT(parts(R"({"a":1,"b":{"c":[2,{}]},"d":"}\",\\"})"),
              ElementsAre("a=1", R"(b={"c":[2,{}]})", R"(d="}\",\\")"));
  EXPECT_THAT(parts(" [ 1 ,\t[2, 3] ,\r\n\"]\", null ] "),
              ElementsAre("=1", "=[2, 3]", "=\"]\"", "=null"));
  EXPECT_THAT(parts("{}"), IsEmpty());
  EXPECT_THAT(parts(" [ ] "), IsEmpty());
}

TEST(JsonParts, MayBeWrongWithin) {
  EXPECT_THAT(parts(R"({"a":{"b":}, "c": nothing})"), ElementsAre(R"(a={"b":})", "c=nothing"));
  const std::string deep(1'000'000, '[');
  const std::string whole = deep + std::string(deep.size(), ']');
  EXPECT_EQ(parts_of("[" + whole + "]")[0].text.size(), whole.size());
}

TEST(JsonParts, OfWhatIsCutOffOrNeitherObjectNorListAreUnavailable) {
  for (const char* text :
       {"",          " ",      "7",       "null",      "\"a\"",     "{",          "[",
        "{\"a",      "{\"a\"", "{\"a\":", "{\"a\":1",  "{\"a\":1,", "{\"a\":1,}", "{\"a\":}",
        "{\"a\"}",   "{a:1}",  "[1",      "[1,",       "[1,]",      "[,1]",       "[1}",
        "{\"a\":1]", "[\"a",   "[\"a\\",  "[\"a\\\"]", "{} {}",     "[],"}) {
    EXPECT_THROW(parts_of(text), Unavailable) << text;
  }
}

TEST(JsonParts, LargeIntegersBecomeDoubles) {
  EXPECT_EQ(
      with_large_integers_as_doubles(
          R"({"a":100000000000000000000,"b":[-9223372036854775809, 18446744073709551616]})"),
      R"({"a":100000000000000000000e0,"b":[-9223372036854775809e0, 18446744073709551616e0]})");
  for (const char* same :
       {"", "18446744073709551615", "-9223372036854775808", "0", "true", "100000000000000000000.5",
        "1e400", R"({"100000000000000000000":"\"100000000000000000000"})",
        "\"100000000000000000000"}) {
    EXPECT_EQ(with_large_integers_as_doubles(same), same);
  }
}

}  // namespace
}  // namespace muster::kube
