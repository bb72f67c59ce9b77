#include "common/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> problems_of(const std::string& schema, const std::string& value) {
  Document document = Document::parse(value, "job.yaml");
  std::vector<std::string> texts;
  for (const Problem& problem : apply_schema(Document::parse(schema, "s").value(), document)) {
    texts.push_back(problem.text());
  }
  return texts;
}

TEST(Schema, SaysWhatWasExpectedAndFound) {
  const struct {
    const char* schema;
    const char* value;
    const char* text;  // nullptr: no problem
  } cases[] = {
      {"{type: integer, minimum: 1}", "0", "an integer of at least 1, found 0 (an integer)"},
      {"{type: integer, minimum: 1}", "many", "found \"many\" (a string)"},
      {"{type: integer, minimum: 1, maximum: 3}", "4", "an integer from 1 to 3"},
      {"{type: integer}", "5.0", nullptr},
      {"{type: integer}", "5.5", "an integer, found 5.5 (a number)"},
      {"{type: integer}", "18446744073709551615", "an integer"},
      {"{type: number, minimum: 0, exclusiveMinimum: true}", "0", "a number above 0"},
      {"{type: number, maximum: 1, exclusiveMaximum: true}", "1", "a number below 1"},
      {"{type: number, maximum: 1}", "1", nullptr},
      {"{type: boolean}", "yes", "true or false, found \"yes\""},
      {"{type: string}", "12", "a string, found 12"},
      {"{type: string, minLength: 2, maxLength: 3}", "\"a\"", "from 2 to 3 characters"},
      {"{type: string, maxLength: 2}", "äö", nullptr},
      {"{type: string, pattern: '^a+$'}", "aab", "matching ^a+$"},
      {"{type: string, pattern: b}", "aab", nullptr},
      {"{type: string, enum: [sync, async]}", "asnyc",
       "one of sync, async, found \"asnyc\" (a string); did you mean async?"},
      {"{type: array, maxItems: 1, items: {type: integer}}", "[1, 2]", "at most 1 entries"},
      {"{type: array, items: {type: integer}}", "[1, x]", "[1]: expected an integer"},
      {"{type: object, minProperties: 1}", "{}", "at least 1 fields"},
      {"{type: object, required: [a], properties: {a: {type: string}}}", "{}",
       "a: expected a string, found nothing"},
      {"{type: object, properties: {rate: {type: number}}}", "{raet: 1}", "did you mean rate?"},
      {"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{x: 1}", nullptr},
      {"{type: object, additionalProperties: {type: string}}", "{x: 1}", "x: expected a string"},
      {"{type: string, nullable: true}", "~", nullptr},
      {"{type: string}", "~", "a string, found null"},
      {"{x-kubernetes-int-or-string: true}", "50%", nullptr},
      {"{x-kubernetes-int-or-string: true}", "1.5", "an integer or a string"},
  };
  for (const auto& item : cases) {
    const auto texts = problems_of(item.schema, item.value);
    if (item.text == nullptr) {
      EXPECT_TRUE(texts.empty()) << item.schema << " " << item.value << ": " << texts.front();
    } else {
      ASSERT_EQ(texts.size(), 1u) << item.schema << " " << item.value;
      EXPECT_THAT(texts[0], HasSubstr(item.text));
    }
  }
}

TEST(Schema, FillsDefaultsAsTheApiServerDoes) {
  const Json schema = Document::parse(R"(
type: object
properties:
  a: {type: integer, default: 1}
  b: {type: object, default: {}, properties: {c: {type: string, default: x}}}
  d: {type: object, properties: {e: {type: string, default: y}}}
  f: {type: integer, nullable: true, default: 3}
  g: {type: integer, default: 4}
)",
                                      "s")
                          .value();
  Document document = Document::parse("f: null\ng: null", "j");
  EXPECT_TRUE(apply_schema(schema, document).empty());
  EXPECT_EQ(document.value().dump(), R"({"f":null,"g":4,"a":1,"b":{"c":"x"}})");
}

TEST(Schema, ReportsEveryProblemWithItsLine) {
  const auto texts = problems_of(
      "{type: object, properties: {a: {type: integer}, b: {type: integer}}}", "a: x\nb: y\nc: 1");
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_THAT(texts[0], HasSubstr("job.yaml:1: a: "));
  EXPECT_THAT(texts[1], HasSubstr("job.yaml:2: b: "));
  EXPECT_THAT(
      texts[2],
      HasSubstr("job.yaml:3: c: expected one of the fields a, b, found the unknown field \"c\""));
}

TEST(Schema, StopsReportingSomewhere) {
  std::string yaml = "[";
  for (int i = 0; i < 1000; ++i) yaml += "x,";
  EXPECT_EQ(problems_of("{type: array, items: {type: integer}}", yaml + "]").size(), kMaxProblems);
}

TEST(Schema, AppliesToAPartAndPassesOverWhatIsAbsent) {
  const Json schema =
      Document::parse("{type: object, properties: {x: {type: integer}}}", "s").value();
  Document document = Document::parse("a:\n  b: {x: one}", "j");
  const auto problems = apply_schema(schema, document, "a.b");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "a.b.x");
  EXPECT_TRUE(apply_schema(schema, document, "a.c").empty());
}

TEST(Schema, AVeryLongStringIsMatchedWithoutHarm) {
  const std::string text(1000000, 'a');
  EXPECT_EQ(problems_of("{type: string, pattern: '^(a|b)*c$'}", text).size(), 1u);
}

TEST(Nearest, FindsSlipsOfTheKeyboardAndNothingElse) {
  const std::vector<std::string> names = {"learningRate", "relu", "sigmoid",
                                          "worker",       "ps",   "seed"};
  const struct {
    const char* word;
    const char* near;
  } cases[] = {
      {"learninRate", "learningRate"},
      {"learning_rate", "learningRate"},
      {"leraningRate", "learningRate"},
      {"ReLU", "relu"},
      {"sigmiod", "sigmoid"},
      {"wroker", "worker"},
      {"sp", "ps"},
      {"xy", ""},
      {"banana", ""},
      {"", ""},
      {"PS", "ps"},
  };
  for (const auto& item : cases) EXPECT_EQ(nearest(item.word, names), item.near) << item.word;
  EXPECT_EQ(nearest(std::string(100000, 'a'), names), "");
}

TEST(Problems, AreThrownTogetherWithTheCodeAskedFor) {
  EXPECT_NO_THROW(require_no_problems({}, 78));
  try {
    require_no_problems({{"a", "j:1", "x", "y", ""}, {"b", "j:2", "x", "y", "z"}}, 78);
    FAIL();
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), 78);
    EXPECT_STREQ(error.what(), "j:1: a: expected x, found y\nj:2: b: expected x, found y; z");
  }
}

}  // namespace
}  // namespace muster
