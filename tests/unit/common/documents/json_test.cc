#include "common/documents/json.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

std::string nested(size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

std::string crowd(size_t members) {
  Json object = Json::object();
  for (size_t i = 0; i < members; ++i) object[std::to_string(i)] = Json::object();
  return object.dump();
}

TEST(Json, OfAnySourceIsReadWithinBounds) {
  struct Case {
    std::string text;
    bool is_read;
  };
  const Case cases[] = {
      {R"({"a": [1, {"b": null}]})", true},
      {"{", false},
      {nested(64), true},
      {nested(65), false},
      {nested(100'000), false},
      {crowd(10'000), true},
      {crowd(10'001), false},
      {"[" + crowd(6'000) + "," + crowd(6'000) + "]", true},
      {R"({"a": )" + crowd(10'001) + "}", false},
  };
  for (const Case& one : cases)
    EXPECT_EQ(!parse_or_null(one.text).is_null(), one.is_read) << one.text.substr(0, 50);
  EXPECT_EQ(parse_or_null(R"({"a": [1, {"b": 2}], "c": 3})"),
            Json({{"a", {1, {{"b", 2}}}}, {"c", 3}}));
}

}  // namespace
}  // namespace muster
