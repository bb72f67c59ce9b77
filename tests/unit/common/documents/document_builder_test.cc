#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/documents/document.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string json_of(const std::string& yaml) {
  return Document::parse(yaml, "job.yaml").value().dump();
}

std::string builder_error(const std::string& yaml) {
  try {
    Document::parse(yaml, "job.yaml");
  } catch (const Malformed& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(DocumentBuilder, CopiesTheAnchorsValueForAnAlias) {
  const struct {
    const char* yaml;
    const char* json;
  } cases[] = {
      {"a: &x 1\nb: *x", R"({"a":1,"b":1})"},
      {"a: &x '1'\nb: *x", R"({"a":"1","b":"1"})"},
      {"a: &x\nb: *x", R"({"a":null,"b":null})"},
      {"a: &x {b: [1]}\nc: [*x, *x]", R"({"a":{"b":[1]},"c":[{"b":[1]},{"b":[1]}]})"},
      {"a: &x [&y 1, *y]\nb: *x", R"({"a":[1,1],"b":[1,1]})"},
      {"a: &x 1\nb: *x\nc: &x 2\nd: *x", R"({"a":1,"b":1,"c":2,"d":2})"},
      {"a: &x name\n*x : 1", R"({"a":"name","name":1})"},
      {"&x a: *x", R"({"a":"a"})"},
      {"&x {a: 1}", R"({"a":1})"},
  };
  for (const auto& item : cases) EXPECT_EQ(json_of(item.yaml), item.json) << item.yaml;
}

TEST(DocumentBuilder, MergesObjectsIntoTheOneThatHasTheMergeKey) {
  const std::string two = "x: &x {a: 1, b: 2}\nw: &w {b: 3, c: 4}\n";
  const std::string json = R"({"x":{"a":1,"b":2},"w":{"b":3,"c":4},"z":)";
  const struct {
    const char* yaml;
    const char* merged;
  } cases[] = {
      {"z: {<<: *x}", R"({"a":1,"b":2})"},
      {"z: {<<: *x, b: 5}", R"({"b":5,"a":1})"},
      {"z:\n  <<: [*x, *w]\n  a: 6", R"({"a":6,"b":2,"c":4})"},
      {"z:\n  <<: [*w, *x]", R"({"b":3,"c":4,"a":1})"},
      {"z: {d: 7, <<: *x}", R"({"d":7,"a":1,"b":2})"},
      {"z: {<<: {a: 8}, b: 9}", R"({"b":9,"a":8})"},
      {"z: {<<: {<<: *x, b: 1}, c: 1}", R"({"c":1,"b":1,"a":1})"},
      {"z: {<<: []}", "{}"},
      {"z: {'<<': *x}", R"({"<<":{"a":1,"b":2}})"},
      {"z: <<", R"("<<")"},
  };
  for (const auto& item : cases) {
    EXPECT_EQ(json_of(two + item.yaml), json + item.merged + "}") << item.yaml;
  }
}

TEST(DocumentBuilder, SaysWhereAnAliasOrAMergeIsWrong) {
  const struct {
    const char* yaml;
    const char* message;
  } cases[] = {
      {"a: 1\nb: *x",
       "job.yaml:2:4: expected an anchor (&name) before its alias (*name), found none"},
      {"a: *x\nb: &x 1", "job.yaml:1:4: expected an anchor (&name) before its alias"},
      {"a: &x\n  - *x",
       "job.yaml:2:5: expected an alias of a value that ends before it, found an alias of the list "
       "or object that it stands in"},
      {"a: &x {b: {<<: *x}}", "job.yaml:1:16: expected an alias of a value that ends before it"},
      {"a: &x [1]\n*x : 2", "job.yaml:2:1: expected a field's name, found an alias of a list"},
      {"a: &x 1\n*x : 2", "job.yaml:2:1: expected a field's name, found none"},
      {"a: &x 1\nb:\n  <<: *x",
       "job.yaml:3:3: expected an object after <<, or a list of objects, found a number"},
      {"a:\n  <<:",
       "job.yaml:2:3: expected an object after <<, or a list of objects, found a null"},
      {"a: {<<: [[{b: 1}]]}",
       "job.yaml:1:5: expected an object after <<, or a list of objects, found"},
      {"a: &x {b: 1}\nc:\n  b: 2\n  <<: *x",
       "job.yaml:4:3: expected << before the fields of the object that it also brings, found it "
       "after 'b'"},
      {"a: &x {b: 1}\nc:\n  <<: *x\n  <<: *x",
       "job.yaml:4:3: expected each field once, found '<<' again; one << takes a list: [*a, *b]"},
  };
  for (const auto& item : cases) {
    EXPECT_THAT(builder_error(item.yaml), HasSubstr(item.message)) << item.yaml;
  }
}

// Ten levels of ten aliases each stand for 10^10 values.
TEST(DocumentBuilder, RefusesAliasesThatStandForTooManyValues) {
  std::string laughs = "l0: &l0 lol\n";
  for (int level = 1; level <= 10; ++level) {
    const std::string below = "*l" + std::to_string(level - 1);
    laughs += "l" + std::to_string(level) + ": &l" + std::to_string(level) + " [" + below;
    for (int i = 1; i < 10; ++i) laughs += ", " + below;
    laughs += "]\n";
  }
  EXPECT_THAT(builder_error(laughs),
              HasSubstr("job.yaml:6:40: expected at most 100000 values, with all that anchors and "
                        "aliases stand for, found more"));
}

TEST(DocumentBuilder, RefusesAliasesThatStandForTooMuchText) {
  std::string yaml = "a: &a " + std::string(size_t{1} << 20, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) yaml += "*a,";
  EXPECT_THAT(
      builder_error(yaml + "]"),
      HasSubstr("job.yaml:2:14: expected at most 4 MiB of text that anchors and aliases stand "
                "for, found more"));
}

TEST(DocumentBuilder, RefusesAnchorsInAnchorsThatStandForTooMuch) {
  std::string yaml;
  for (int i = 0; i < 60; ++i) yaml += "&a" + std::to_string(i) + " [";
  yaml += std::string(4000, '1');
  for (int i = 0; i < 2000; ++i) yaml += ",1";
  EXPECT_THAT(builder_error(yaml + std::string(60, ']')), HasSubstr("at most 100000 values"));
}

TEST(DocumentBuilder, RefusesAliasesThatNestTooDeep) {
  std::string yaml = "a0: &a0 []\n";
  for (int i = 1; i < 70; ++i) {
    const std::string n = std::to_string(i);
    yaml += "a" + n + ": &a" + n + " [*a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_THAT(builder_error(yaml),
              HasSubstr("job.yaml:64:12: expected at most 64 levels of nesting"));
}

TEST(DocumentBuilder, LocatesAnAliasWhereItStandsAndWhatIsInItAtTheAnchor) {
  const Document document = Document::parse(
      "a: &x\n"
      "  b:\n"
      "    c: 1\n"
      "d: *x\n"
      "e:\n"
      "  <<: *x\n"
      "  f: 2\n"
      "g:\n"
      "  - *x\n",
      "j");
  EXPECT_EQ(document.locate("d"), "j:4");
  EXPECT_EQ(document.locate("d.b.c"), "j:3");
  EXPECT_EQ(document.locate("e"), "j:5");
  EXPECT_EQ(document.locate("e.b"), "j:2");
  EXPECT_EQ(document.locate("e.f"), "j:7");
  EXPECT_EQ(document.locate("g[0]"), "j:9");
  EXPECT_EQ(document.locate("g[0].b"), "j:2");
}

TEST(DocumentBuilder, ChangesACopyWithoutItsAnchor) {
  Document document = Document::parse("a: &x {b: 1}\nc: *x\n", "j");
  document.set("c.b", "2");
  EXPECT_EQ(document.value().dump(), R"({"a":{"b":1},"c":{"b":2}})");
  EXPECT_EQ(document.locate("a.b"), "j:1");
  EXPECT_EQ(document.locate("c.b"), "j (--set)");
}

}  // namespace
}  // namespace muster
