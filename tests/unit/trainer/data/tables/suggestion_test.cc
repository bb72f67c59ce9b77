#include "trainer/data/tables/suggestion.h"

#include <fmt/format.h>

#include "common/documents/document.h"
#include "gmock/gmock.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/trainer/data/idx_files.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 40 rows of two classes and a price.
std::string forty_rows() {
  std::string csv = ",id,name,size,colour,same,copy,price,cents,class\n";
  for (int i = 0; i < 40; ++i)
    csv += fmt::format("{},{},n{},{},{},7,{},{}.5,{},{}\n", i, 100 + i, i,
                       i % 7 == 0 ? "" : std::to_string(i % 11), i % 3 == 0 ? "red" : "blue",
                       i % 2 == 0 ? "A" : "B", i * i % 97, (i * i % 97) * 100 + 50,
                       i % 2 == 0 ? "yes" : "no");
  return csv;
}

Json training_of(const Suggestion& suggestion) {
  return Document::parse(suggestion.manifest, "job.yaml").value()["spec"]["training"];
}

TEST(Suggestion, PredictsAClassFromWhatCanHelp) {
  const TestFolder folder;
  const Suggestion suggestion =
      suggest(folder.write("My sales.csv", forty_rows()), "My sales.csv", {}, "class");
  EXPECT_THAT(
      suggestion.notes,
      ElementsAre("column \"\" is left out: it has no name, as the index of a table",
                  "column \"id\" is left out: it has another value in each row, as an identifier",
                  "column \"name\" is left out: it has another value in each row, as an identifier",
                  "column \"same\" is left out: all its cells are equal",
                  "column \"copy\" is left out: it gives the target away"));
  const Json training = training_of(suggestion);
  EXPECT_EQ(training["model"]["loss"], "softmaxCrossEntropy");
  EXPECT_EQ(training["model"]["layers"][1]["dense"]["units"], 2);
  const Json& table = training["data"]["train"]["table"];
  EXPECT_EQ(table["files"], "My sales.csv");
  EXPECT_EQ(table["features"], Json::parse(R"([{"columns": ["price", "cents"], "kind": "number"},
                            {"columns": ["size"], "kind": "number", "missing": "flag"},
                            {"columns": ["colour"], "kind": "category"}])"));
  EXPECT_EQ(training["data"]["train"]["take"], 28);
  EXPECT_EQ(training["data"]["validation"]["skip"], 28);
  EXPECT_EQ(training["data"]["validation"]["take"], 6);
  EXPECT_EQ(training["data"]["test"]["skip"], 34);
}

TEST(Suggestion, PredictsANumberWithoutWhatIsThatNumber) {
  const TestFolder folder;
  const Suggestion suggestion = suggest(folder.write("t.csv", forty_rows()), "t.csv", {}, "price");
  EXPECT_THAT(suggestion.notes,
              testing::Contains("column \"cents\" is left out: it gives the target away"));
  const Json training = training_of(suggestion);
  EXPECT_EQ(training["model"]["loss"], "meanSquaredError");
  EXPECT_EQ(training["data"]["train"]["table"]["target"],
            Json::parse(R"({"column": "price", "kind": "number", "transform": "standardize"})"));
}

TEST(Suggestion, TakesFewWholeNumbersForClasses) {
  const TestFolder folder;
  std::string csv = "a,y\n";
  for (int i = 0; i < 30; ++i) csv += fmt::format("{},{}\n", i * i % 23, i % 3);
  EXPECT_EQ(training_of(suggest(folder.write("t.csv", csv), "t.csv", {},
                                "y"))["model"]["layers"][1]["dense"]["units"],
            3);
}

TEST(Suggestion, PredictsTheProbabilityOfAOne) {
  const TestFolder folder;
  for (const auto& [no, yes] : {std::pair{"0", "1"}, {"false", "true"}}) {
    std::string csv = "a,y\n";
    for (int i = 0; i < 30; ++i) csv += fmt::format("{},{}\n", i * i % 23, i % 3 == 0 ? yes : no);
    const Json training = training_of(suggest(folder.write("t.csv", csv), "t.csv", {}, "y"));
    EXPECT_EQ(training["model"]["loss"], "binaryCrossEntropy");
    EXPECT_EQ(training["model"]["layers"][1]["dense"]["units"], 1);
    EXPECT_EQ(training["data"]["train"]["table"]["target"],
              Json::parse(R"({"column": "y", "kind": "number"})"));
  }
}

TEST(Suggestion, SaysWhyThereIsNone) {
  const TestFolder folder;
  const auto refusal = [&](const std::string& csv, const std::string& target) {
    const auto file = folder.write("t.csv", csv);
    return test::error_of([&] { suggest(file, "t.csv", {}, target); });
  };
  EXPECT_THAT(refusal(forty_rows(), "prize"), HasSubstr("did you mean price?"));
  EXPECT_THAT(refusal(forty_rows(), "same"), HasSubstr("expected different values of the target"));
  EXPECT_THAT(refusal(forty_rows(), "size"),
              HasSubstr("expected a value of the target \"size\" in every row, found none in 6 of "
                        "40"));
  EXPECT_THAT(refusal("a,y\n1,2\n", "y"), HasSubstr("expected at least 10 rows, found 1"));
}

}  // namespace
}  // namespace muster::data
