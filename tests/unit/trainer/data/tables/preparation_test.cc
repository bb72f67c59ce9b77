#include "trainer/data/tables/preparation.h"

#include <cmath>
#include <numeric>

#include "gmock/gmock.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/trainer/data/idx_files.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::FloatNear;
using testing::HasSubstr;

std::vector<uint64_t> all_rows(const RawTable& table) {
  std::vector<uint64_t> rows(table.rows());
  std::iota(rows.begin(), rows.end(), uint64_t{0});
  return rows;
}

// A file of training data.
struct Trained {
  explicit Trained(const std::string& csv, std::vector<spec::TableFeature> features = {},
                   bool is_class = true) {
    source.files = {folder.write("train.csv", csv)};
    source.features = std::move(features);
    source.target = {"y", is_class, spec::Transform::none};
  }
  Preparation prepared() const {
    const RawTable table = read_raw_table(source, wanted_of(source));
    return prepare(source, table, all_rows(table));
  }
  // The inputs of another file.
  std::vector<float> inputs(const Preparation& preparation, const std::string& csv) const {
    spec::TableSource other = source;
    other.files = {folder.write("other.csv", csv)};
    const RawTable table = read_raw_table(other, preparation.wanted(false));
    std::vector<float> inputs(table.rows() * static_cast<size_t>(preparation.inputs()));
    write_inputs(preparation, table, all_rows(table), inputs);
    return inputs;
  }
  const TestFolder folder;
  spec::TableSource source;
};

spec::TableFeature feature(const char* column) {
  return {.columns = {column}, .is_category = std::nullopt};
}

TEST(Preparation, StandardizesNumbersByTheTrainingData) {
  const Trained trained("a,same,y\n1,7,x\n3,7,z\n5,7,x\n");
  const Preparation preparation = trained.prepared();
  EXPECT_THAT(preparation.classes, ElementsAre("x", "z"));
  const float deviation = std::sqrt(8.0f / 3);
  EXPECT_THAT(trained.inputs(preparation, "same,a\n8,3\n7,7\n"),
              ElementsAre(0, 1, FloatNear(4 / deviation, 1e-6f), 0));
}

TEST(Preparation, PutsTheMeanAConstantOrAFlagInPlaceOfMissingNumbers) {
  spec::TableFeature mean = feature("a"), constant = feature("a"), flag = feature("a");
  mean.transform = constant.transform = flag.transform = spec::Transform::none;
  constant.missing = spec::Missing::constant;
  constant.constant = -1;
  flag.missing = spec::Missing::flag;
  const Trained trained("a,y\n1,x\n,x\n3,x\n", {mean, constant, flag});
  EXPECT_THAT(trained.inputs(trained.prepared(), "a\n5\nNA\n"),
              ElementsAre(5, 5, 5, 0, 2, -1, 2, 1));
}

TEST(Preparation, ScalesByLeastAndMostAndByTheLogarithm) {
  spec::TableFeature min_max = feature("a"), log = feature("a");
  min_max.transform = spec::Transform::min_max;
  log.transform = spec::Transform::log;
  const Trained trained("a,y\n2,x\n4,x\n", {min_max, log});
  EXPECT_THAT(trained.inputs(trained.prepared(), "a\n5\n-1\n"),
              ElementsAre(1.5f, FloatNear(std::log(6.0f), 1e-6f), -1.5f,
                          FloatNear(-std::log(2.0f), 1e-6f)));
}

TEST(Preparation, HasAnInputForEachFrequentValueAndOneForAllOthers) {
  spec::TableFeature most = feature("a");
  most.most_values = 2;
  const Trained trained("a,y\nc,x\nb,x\na,x\nb,x\nd,x\n", {most});
  const Preparation preparation = trained.prepared();
  EXPECT_THAT(preparation.columns[0].values, ElementsAre("b", "a"));
  EXPECT_THAT(trained.inputs(preparation, "a\nb\na\nc\nnew\n\"\"\n"),
              ElementsAre(1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1));
}

TEST(Preparation, SortsClassesAsNumbersIfTheyAreNumbers) {
  EXPECT_THAT(Trained("a,y\n1,10\n1,9\n1,2\n").prepared().classes, ElementsAre("2", "9", "10"));
  EXPECT_THAT(Trained("a,y\n1,10\n1,9\n1,x\n").prepared().classes, ElementsAre("10", "9", "x"));
}

TEST(Preparation, RefusesAMissingTargetAndAnUnknownClassByLine) {
  const Trained trained("a,y\n1,x\n2,\n");
  const RawTable table = read_raw_table(trained.source, wanted_of(trained.source));
  const Preparation preparation = trained.prepared();
  EXPECT_THAT(
      test::error_of([&] { class_targets(preparation, table, all_rows(table)); }),
      EndsWith("train.csv, line 3, column y: expected the target of the row, found an empty "
               "cell"));
  Preparation other = preparation;
  other.classes = {"p", "q"};
  EXPECT_THAT(test::error_of([&] { class_targets(other, table, all_rows(table)); }),
              EndsWith("line 2, column y: expected one of the classes of the training data, p, q, "
                       "found \"x\""));
}

TEST(Preparation, RefusesTheTargetAmongTheFeaturesAndNoFeatures) {
  EXPECT_THAT(test::error_of([] { Trained("a,y\n1,x\n", {feature("y")}).prepared(); }),
              HasSubstr("expected columns besides the target, found \"y\", which is the target"));
  EXPECT_THAT(test::error_of([] { Trained("y\nx\n").prepared(); }),
              HasSubstr("expected columns besides the target \"y\", found none"));
}

TEST(Preparation, UndoesWhatItDoesToATarget) {
  for (const auto transform : {spec::Transform::standardize, spec::Transform::min_max,
                               spec::Transform::log, spec::Transform::none}) {
    Trained trained("a,y\n1,100\n1,-50\n1,300\n", {}, false);
    trained.source.target.transform = transform;
    const Preparation preparation = trained.prepared();
    const RawTable table = read_raw_table(trained.source, wanted_of(trained.source));
    const std::vector<float> targets = number_targets(preparation, table, all_rows(table));
    EXPECT_NEAR(preparation.target_scaling.undo(static_cast<double>(targets[2])), 300, 1e-3);
  }
}

TEST(Preparation, RefusesANumberThatIsNoFloat) {
  spec::TableFeature none = feature("a");
  none.transform = spec::Transform::none;
  const Trained trained("a,y\n1,x\n", {none});
  EXPECT_THAT(test::error_of([&] { trained.inputs(trained.prepared(), "a\n1\n1e300\n"); }),
              HasSubstr("other.csv, line 3, column a: expected a number that is a float after its "
                        "transform, found 1e+300"));
}

TEST(Preparation, IsTheSameAfterJson) {
  spec::TableFeature flag = feature("a");
  flag.missing = spec::Missing::flag;
  for (const bool is_class : {true, false}) {
    const Preparation before =
        Trained("a,b,y\n0.1,p,1\n0.7,q,2\n", {flag, feature("b")}, is_class).prepared();
    const Json json = Json::parse(to_json(before).dump());
    EXPECT_EQ(to_json(parse_preparation(json, "x")), to_json(before));
    EXPECT_EQ(parse_preparation(json, "x").inputs(), 5);
  }
}

TEST(Preparation, OfDamagedJsonIsRefusedByItsPlace) {
  const Json whole = to_json(Trained("a,y\n1,5\n2,6\n", {}, false).prepared());
  for (const char* lost : {"columns", "target", "scaling"}) {
    Json json = whole;
    json.erase(lost);
    EXPECT_THAT(test::error_of([&] { parse_preparation(json, "FILE: table"); }),
                testing::StartsWith("FILE: table"));
  }
  Json json = whole;
  json["columns"][0]["scaling"]["factor"] = 0;
  EXPECT_THAT(test::error_of([&] { parse_preparation(json, "F"); }),
              HasSubstr("F: columns: a: factor: expected another number than 0"));
}

}  // namespace
}  // namespace muster::data
