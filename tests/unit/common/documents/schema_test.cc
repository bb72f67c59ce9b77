#include "common/documents/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/documents/problems.h"
#include "common/error.h"
#include "common/program/usage.h"
#include "common/text/nearest.h"

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
      {"{type: boolean}", "'yes'", "true or false, found \"yes\""},
      {"{type: string}", "12", "a string, found 12"},
      {"{type: string, minLength: 2, maxLength: 3}", "\"a\"", "a string of 2 to 3 characters"},
      {"{type: string, maxLength: 2}", "äö", nullptr},
      {"{type: string, pattern: '^a+$'}", "aab", "matching ^a+$"},
      {"{type: string, pattern: b}", "aab", nullptr},
      {"{type: string, enum: [sync, async]}", "asnyc",
       "did you mean async? Expected one of sync, async, found \"asnyc\" (a string)"},
      {"{type: array, maxItems: 1, items: {type: integer}}", "[1, 2]",
       "a list of at most 1 entry, found a list of 2 entries"},
      {"{type: array, items: {type: integer}}", "[1, x]", "[1]: expected an integer"},
      {"{type: array, minItems: 1, maxItems: 9, items: {type: integer}}", "[]",
       "a list of 1 to 9 entries, found an empty list"},
      {"{type: object, minProperties: 1}", "{}",
       "an object with at least 1 field, found an empty object"},
      {"{type: object, maxProperties: 1, additionalProperties: {type: integer}}", "{a: 1, b: 2}",
       "an object with at most 1 field, found 2 (a, b)"},
      {"{type: object, minProperties: 1, maxProperties: 1, additionalProperties: {type: integer}}",
       "{a: 1, b: 2}", "an object with exactly 1 field, found 2 (a, b)"},
      {"{type: integer, minimum: 1, maximum: 1}", "2", "expected 1, found 2"},
      {"{type: integer, maximum: 9}", "99999999999999999999", "found 1e+20 (a number)"},
      {"{type: number}", "1e999", "a number, found 1e999 (not a finite number)"},
      {"{type: number, maximum: 5}", "1e999", "found 1e999 (not a finite number)"},
      {"{type: number, format: float, maximum: 1, exclusiveMaximum: true}", "0.99999999",
       "a number below 1, found 0.99999999 (a number), which a float32 rounds to 1.0"},
      {"{type: number, format: float, maximum: 1, exclusiveMaximum: true}", "0.9999", nullptr},
      {"{type: number, format: float, minimum: 0, exclusiveMinimum: true}", "1e-60",
       "which a float32 rounds to 0.0"},
      {"{type: number, format: float}", "1e300", "which is more than a float32 holds"},
      {"{type: number, format: float, maximum: 1}", "2", "of at most 1, found 2 (an integer)"},
      {"{type: object, required: [a], properties: {a: {type: string}}}", "{}",
       "a: expected a string, found nothing"},
      {"{type: object, properties: {rate: {type: number}}}", "{raet: 1}", "did you mean rate?"},
      {"{type: object, required: [rate], properties: {rate: {type: number}}}", "{raet: 1}",
       "did you mean rate?"},
      {"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{x: 1}", nullptr},
      {"{type: object, required: [rate], properties: {rate: {type: number}}, "
       "x-kubernetes-preserve-unknown-fields: true}",
       "{raet: 1}", "rate: expected a number, found nothing"},
      {"{type: object, additionalProperties: {type: string}}", "{x: 1}", "x: expected a string"},
      {"{type: string, nullable: true}", "~", nullptr},
      {"{type: string}", "~", "a string, found null"},
      {"{x-kubernetes-int-or-string: true}", "50%", nullptr},
      {"{x-kubernetes-int-or-string: true}", "1.5", "an integer or a string"},
      {"{x-kubernetes-int-or-string: true}", "1e300", "an integer or a string"},
      {"{x-kubernetes-int-or-string: true, minimum: 1, maximum: 9, pattern: ^all$}", "all",
       nullptr},
      {"{x-kubernetes-int-or-string: true, minimum: 1, maximum: 9, pattern: ^all$}", "9", nullptr},
      {"{x-kubernetes-int-or-string: true, minimum: 1, maximum: 9, pattern: ^all$}", "10",
       "an integer from 1 to 9 or all, found 10"},
      {"{x-kubernetes-int-or-string: true, minimum: 1, pattern: '^[0-9]+%$'}", "50", nullptr},
      {"{x-kubernetes-int-or-string: true, minimum: 1, pattern: '^[0-9]+%$'}", "some",
       "an integer of at least 1 or a string matching ^[0-9]+%$, found \"some\""},
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
  h: {x-kubernetes-int-or-string: true}
)",
                                      "s")
                          .value();
  Document document = Document::parse("f: null\ng: null\nh: 5.0", "j");
  EXPECT_TRUE(apply_schema(schema, document).empty());
  EXPECT_EQ(document.value().dump(), R"({"f":null,"g":4,"h":5,"a":1,"b":{"c":"x"}})");
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

TEST(Nearest, OffersNothingWithAnotherNumber) {
  const std::vector<std::string> names = {"ssd-mobilenet-v1", "mobilenet-v1", "conv2d", "relu"};
  const struct {
    const char* word;
    const char* near;
  } cases[] = {
      {"mobilenet-v2", ""}, {"ssd_mobilenet_v2", ""},      {"conv3d", ""},
      {"relu6", ""},        {"mobilenet", "mobilenet-v1"}, {"moblienet_v1", "mobilenet-v1"},
      {"conv2", "conv2d"},
  };
  for (const auto& item : cases) EXPECT_EQ(nearest(item.word, names), item.near) << item.word;
}

TEST(DidYouMean, KnowsSlipsAndParts) {
  const std::vector<std::string> names = {"softmaxCrossEntropy", "meanSquaredError", "mnist-mlp",
                                          "mnist-sigmoid", "sgd"};
  const struct {
    const char* word;
    const char* hint;
  } cases[] = {
      {"softmax", "did you mean softmaxCrossEntropy?"},
      {"crossentropy", "did you mean softmaxCrossEntropy?"},
      {"sigmoid", "did you mean mnist-sigmoid?"},
      {"mnist", "did you mean mnist-mlp or mnist-sigmoid?"},
      {"sdg", "did you mean sgd?"},
      {"rror", ""},
      {"me", ""},
  };
  for (const auto& item : cases) EXPECT_EQ(did_you_mean(item.word, names), item.hint) << item.word;
}

TEST(UnknownCommand, IsNamedWithAHint) {
  const std::vector<std::string> commands = {"run", "validate"};
  const struct {
    std::vector<std::string> words;
    const char* text;
  } cases[] = {
      {{"vaildate", "job.yaml"},
       "did you mean validate? Expected one of the commands run, validate, found \"vaildate\""},
      {{"job.yaml"}, "expected one of the commands run, validate, found \"job.yaml\""},
      {{"--diretory", "x"}, ""},
      {{}, ""},
  };
  for (const auto& item : cases) EXPECT_EQ(unknown_command(item.words, commands), item.text);
}

TEST(Problems, KnowWhatAMistakeTakesWithIt) {
  const Document document = Document::parse("a:\n  b: 1\nc: 2\n", "j");
  Problems problems(document);
  EXPECT_TRUE(problems.is_whole(""));
  problems.report("a.b", "x", "y");
  Problem unknown = make_problem(document, "tarin", "x", "y");
  unknown.meant = "train";
  problems.add({unknown});
  const struct {
    const char* path;
    bool sound, whole;
  } cases[] = {{"a", true, false},       {"a.b", false, false},    {"a.b.c", false, false},
               {"a.b[0]", false, false}, {"a.bc", true, true},     {"c", true, true},
               {"train", false, false},  {"train.x", false, false}};
  for (const auto& item : cases) {
    EXPECT_EQ(problems.is_sound(item.path), item.sound) << item.path;
    EXPECT_EQ(problems.is_whole(item.path), item.whole) << item.path;
  }
}

TEST(Problems, AreSortedByLineAndThoseWithoutOneComeLast) {
  Document document = Document::parse("a: 1\nb: 2\nc: 3\n", "j");
  document.set("s", "1");
  Problems problems(document);
  for (const char* path : {"c", "s", "a", "b"}) problems.report(path, "x", "y");
  std::vector<std::string> where;
  for (const Problem& problem : problems.sorted()) where.push_back(problem.where);
  EXPECT_EQ(where, (std::vector<std::string>{"j:1", "j:2", "j:3", "j (--set)"}));
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
