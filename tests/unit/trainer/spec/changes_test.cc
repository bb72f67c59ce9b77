#include "trainer/spec/changes.h"

#include <gmock/gmock.h>

namespace muster::spec {
namespace {

std::string changed(const char* before, const char* after) {
  return list_changes(changes(Json::parse(before), Json::parse(after)));
}

TEST(Changes, NamesEachLeafWithBothValues) {
  struct Case {
    const char *before, *after, *text;
  };
  const Case cases[] = {
      {R"({"a": 1})", R"({"a": 1})", ""},
      {R"({"a": 1})", R"({"a": 1.0})", ""},
      {R"({"a": 1, "b": null})", R"({"a": 1})", ""},
      {R"({"a": {"b": 1, "c": 2}})", R"({"a": {"c": 2, "b": 3}})", "a.b (was 1, is 3)"},
      {R"({"a": 1})", R"({"a": 1, "b": "x"})", R"(b (was not there, is "x"))"},
      {R"({"a": 1, "b": {"c": 2}})", R"({"a": 1})", R"(b (was {"c":2}, is not there))"},
      {R"({"l": [1, {"d": 2}]})", R"({"l": [1, {"d": 3}]})", "l[1].d (was 2, is 3)"},
      {R"({"l": [1, 2]})", R"({"l": [1]})", "l[1] (was 2, is not there)"},
      {R"({"a": {"b": 1}})", R"({"a": [1]})", R"(a (was {"b":1}, is [1]))"},
      {R"({"a": 1, "b": 1, "c": 1, "d": 1})", R"({"a": 2, "b": 2, "c": 2, "d": 2})",
       "a (was 1, is 2), b (was 1, is 2), c (was 1, is 2) and 1 more"},
  };
  for (const Case& test : cases) EXPECT_EQ(changed(test.before, test.after), test.text);
}

TEST(Changes, CutsLongValues) {
  const std::string text =
      changes(Json{{"a", std::string(1000, 'x')}}, Json{{"a", "y"}}).at(0).text();
  EXPECT_LT(text.size(), 100u);
  EXPECT_THAT(text, testing::HasSubstr("..., is \"y\""));
}

Json training(const char* more) {
  Json json = Json::parse(R"({"model": {"name": "linear-regression"}, "epochs": 2,
                              "data": {"train": {"syntheticLinear": {"samples": 100}}}})");
  json.merge_patch(Json::parse(more));
  return json;
}

TEST(ChangesOfWeights, AreThoseThatBearOnThem) {
  struct Case {
    const char *more, *text;
  };
  const Case cases[] = {
      {"{}", ""},
      {R"({"threads": 3, "summary": {"everySteps": 7, "pictures": 1}, "determinism": "strict"})",
       ""},
      {R"({"checkpoint": {"everySteps": 7, "keep": 2}, "device": "cpu"})", ""},
      {R"({"export": {"onnx": false}})", ""},
      {R"({"data": {"train": {"cache": false, "prefetch": 10}}})", ""},
      {R"({"data": {"train": {"shuffle": false}}})", "data.train.shuffle (was true, is false)"},
      {R"({"epochs": 3})", "epochs (was 2, is 3)"},
      {R"({"data": {"test": {"syntheticLinear": {"samples": 7}}}})", ""},
      {R"({"data": {"validation": {"syntheticLinear": {"samples": 7}}}, "evaluation": {}})", ""},
      {R"({"seed": 9, "precision": "bfloat16"})",
       R"(seed (was 1, is 9), precision (was "float32", is "bfloat16"))"},
  };
  for (const Case& test : cases) {
    const Json after = *with_defaults(training(test.more));
    // The block is as an earlier version wrote it, without the fields that have defaults.
    EXPECT_EQ(list_changes(changes_of_weights(training("{}"), after)), test.text) << test.more;
  }
  const char* stops = R"({"evaluation": {"everyEpochs": 3}, "earlyStopping": {"patience": 2}})";
  const char* stops_later =
      R"({"evaluation": {"everyEpochs": 4}, "earlyStopping": {"patience": 2}})";
  EXPECT_EQ(
      list_changes(changes_of_weights(training(stops), *with_defaults(training(stops_later)))),
      "evaluation.everyEpochs (was 3, is 4)");
  EXPECT_FALSE(with_defaults(training(R"({"of": "the future"})")));
  EXPECT_FALSE(
      changes_of_weights(training(R"({"of": "the future"})"), *with_defaults(training("{}")))
          .empty());
}

TEST(IsBelow, GoesByWholeFields) {
  EXPECT_TRUE(is_below("data.train.cache", "data.train.cache"));
  EXPECT_TRUE(is_below("model.layers[2].dense", "model.layers"));
  EXPECT_FALSE(is_below("stepsize", "steps"));
  EXPECT_FALSE(is_below("data", "data.train"));
}

}  // namespace
}  // namespace muster::spec
