#include "trainer/data/tables/preparation.h"

#include <cmath>
#include <numeric>

#include "gmock/gmock.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "trainer/data/tables/preparing.h"
#include "trainer/data/tables/row_writer.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::FloatNear;
using testing::HasSubstr;

std::vector<PlacedRow> all_rows(const RawRows& rows) {
  std::vector<PlacedRow> placed;
  for (uint64_t row = 0; row < rows.count; ++row) placed.push_back({row, row});
  return placed;
}

// A file of training data.
struct Trained {
  explicit Trained(const std::string& csv, std::vector<spec::TableFeature> features = {},
                   bool is_class = true) {
    source.files = {folder.write("train.csv", csv)};
    source.features = std::move(features);
    source.target = {{"y"}, is_class, spec::Transform::none};
  }
  Preparation prepared() const {
    Preparing preparing(source);
    RawReader(source, wanted_of(source)).read([&](const RawRows& rows) {
      std::vector<uint64_t> all(rows.count);
      std::iota(all.begin(), all.end(), uint64_t{0});
      preparing.add(rows, all);
    });
    return preparing.finish();
  }
  // The inputs of another file.
  std::vector<float> inputs(const Preparation& preparation, const std::string& csv) const {
    spec::TableSource other = source;
    other.files = {folder.write("other.csv", csv)};
    const RawRows rows = read_all(other, preparation.wanted(false));
    std::vector<float> inputs(rows.count * static_cast<size_t>(preparation.inputs()));
    RowWriter(preparation).write_inputs(rows, all_rows(rows), inputs.data());
    return inputs;
  }
  // The classes of the training data.
  void check_classes(const Preparation& preparation) const {
    const RawRows rows = read_all(source, preparation.wanted(true));
    std::vector<int32_t> classes(rows.count);
    RowWriter(preparation).write_classes(rows, all_rows(rows), classes.data());
  }
  const TestFolder folder;
  spec::TableSource source;
};

spec::TableFeature feature(const char* column) {
  spec::TableFeature feature;
  feature.columns = {column};
  return feature;
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
  const char* const missing =
      "train.csv, line 3, column y: expected the target of the row, found an empty cell";
  const Trained trained("a,y\n1,x\n2,\n");
  EXPECT_THAT(test::error_of([&] { trained.prepared(); }), EndsWith(missing));
  Preparation other = Trained("a,y\n1,x\n").prepared();
  EXPECT_THAT(test::error_of([&] { trained.check_classes(other); }), EndsWith(missing));
  other.classes = {"p", "q"};
  EXPECT_THAT(test::error_of([&] { trained.check_classes(other); }),
              EndsWith("line 2, column y: expected one of the classes of the training data, p, q, "
                       "found \"x\""));
}

TEST(Preparation, ReplacesNumbersBeyondItsBounds) {
  spec::TableFeature clipped = feature("a");
  clipped.least = 0;
  clipped.most = 10;
  clipped.transform = spec::Transform::min_max;
  const Trained trained("a,y\n-5,x\n5,x\n99,x\n", {clipped});
  EXPECT_THAT(trained.inputs(trained.prepared(), "a\n-1\n5\n100\n"), ElementsAre(0, 0.5f, 1));
}

TEST(Preparation, HasAnInputForEachBucketOfNumbers) {
  spec::TableFeature buckets = feature("a");
  buckets.transform = spec::Transform::buckets;
  buckets.buckets = 4;
  buckets.missing = spec::Missing::flag;
  // 2 is so frequent that two of the buckets would be empty.
  const Trained trained("a,y\n1,x\n2,x\n2,x\n2,x\n2,x\n2,x\n3,x\n9,x\n", {buckets});
  const Preparation preparation = trained.prepared();
  EXPECT_THAT(preparation.columns[0].bounds, ElementsAre(2, 3));
  EXPECT_THAT(trained.inputs(preparation, "a\n0\n2.5\n3\n\"\"\n"),
              ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1));
}

TEST(Preparation, PutsValuesIntoBucketsByTheirHash) {
  spec::TableFeature hashed = feature("a");
  hashed.hash_buckets = 3;
  const Trained trained("a,y\np,x\n", {hashed});
  // By the published constants: 0xaf63dc4c8601ec8c for "a", 0xaf63df4c8601f1a5 for "b", and
  // 0xcbf29ce484222325 for "".
  EXPECT_THAT(trained.inputs(trained.prepared(), "a\na\nb\n\"\"\n"),
              ElementsAre(0, 1, 0, 0, 1, 0, 0, 0, 1));
}

TEST(Preparation, CountsSeveralCategoriesOfACell) {
  spec::TableFeature several = feature("a");
  several.kind = FeatureKind::categories;
  several.separator = "|";
  const Trained trained("a,y\nred|blue,x\nred,x\n", {several});
  EXPECT_THAT(trained.inputs(trained.prepared(), "a\nblue|blue|new\n\"\"\n"),
              ElementsAre(0, 2, 1, 0, 0, 0));
}

TEST(Preparation, TakesSeveralNumbersOfACell) {
  spec::TableFeature vector = feature("a");
  vector.kind = FeatureKind::vector;
  vector.transform = spec::Transform::none;
  const Trained trained("a,y\n1 2 3,x\n4 5 6,x\n", {vector});
  const Preparation preparation = trained.prepared();
  EXPECT_THAT(trained.inputs(preparation, "a\n7 8 9\n"), ElementsAre(7, 8, 9));
  EXPECT_THAT(test::error_of([&] { trained.inputs(preparation, "a\n7 8 9\n7 8\n"); }),
              HasSubstr("line 3, column a: expected 3 numbers, as in the training data, found 2"));
  EXPECT_THAT(test::error_of([&] { trained.inputs(preparation, "a\n7 8 no\n"); }),
              HasSubstr("line 2, column a: expected numbers, found \"no\""));
  EXPECT_THAT(test::error_of([&] { Trained("a,y\n1 2,x\n1,x\n", {vector}).prepared(); }),
              HasSubstr("line 3, column a: expected 2 numbers, as the first row has, found 1"));
}

TEST(Preparation, GivesSpareInputsToTheMostFrequentNewValues) {
  spec::TableFeature spare = feature("a");
  spare.spare_values = 2;
  const Trained trained("a,y\np,x\nq,x\nq,x\n", {spare});
  Preparation preparation = trained.prepared();
  EXPECT_EQ(preparation.inputs(), 5);
  Trained later("a,y\nq,x\nt,x\ns,x\nr,x\nr,x\n", {spare});
  Extending extending(preparation, {});
  RawReader(later.source, preparation.wanted(true)).read([&](const RawRows& rows) {
    extending.add(rows, std::vector<uint64_t>{0, 1, 2, 3, 4});
  });
  extending.finish();
  EXPECT_THAT(preparation.columns[0].values, ElementsAre("q", "p", "r", "s"));
  EXPECT_EQ(preparation.inputs(), 5);
  EXPECT_THAT(later.inputs(preparation, "a\ns\nt\n"), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0, 0, 1));
}

TEST(Preparation, HasSeveralTargets) {
  Trained trained("a,y,z\n1,2,3\n4,5,7\n", {}, false);
  trained.source.target = {{"z", "y"}, false, spec::Transform::min_max};
  const Preparation preparation = trained.prepared();
  EXPECT_EQ(preparation.inputs(), 1);
  const RawRows rows = read_all(trained.source, preparation.wanted(true));
  std::vector<float> targets(4);
  RowWriter(preparation).write_targets(rows, all_rows(rows), targets.data());
  EXPECT_THAT(targets, ElementsAre(0, 0, 1, 1));
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
    const RawRows rows = read_all(trained.source, wanted_of(trained.source));
    std::vector<float> targets(rows.count);
    RowWriter(preparation).write_targets(rows, all_rows(rows), targets.data());
    EXPECT_NEAR(preparation.target_scalings[0].undo(static_cast<double>(targets[2])), 300, 1e-3);
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
  for (const char* lost : {"columns", "targets", "scalings"}) {
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
