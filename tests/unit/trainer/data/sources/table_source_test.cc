#include "trainer/data/sources/table_source.h"

#include <fmt/format.h>

#include <set>

#include "gmock/gmock.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "trainer/data/sources/look.h"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Lt;

spec::DataSource table(const std::filesystem::path& file, bool is_class = true) {
  spec::DataSource source;
  spec::TableSource table;
  table.files = {file};
  table.target = {{"y"}, is_class, spec::Transform::none};
  source.kind = table;
  return source;
}

spec::TableSource& of(spec::DataSource& source) {
  return std::get<spec::TableSource>(source.kind);
}

spec::TableFeature feature(const char* column) {
  spec::TableFeature feature;
  feature.columns = {column};
  feature.transform = spec::Transform::none;
  return feature;
}

std::vector<float> features_of(const Dataset& dataset, uint64_t sample) {
  const auto* floats = static_cast<const float*>(filled(dataset, sample).features);
  return {floats, floats + dataset.format().shape[0]};
}

std::vector<int32_t> labels_in(const Dataset& dataset) {
  std::vector<int32_t> labels;
  for (uint64_t i = 0; i < dataset.size(); ++i) labels.push_back(dataset.label(i));
  return labels;
}

// Standardized, a is -1 and 1 in the first two rows.
constexpr const char* kFourRows = "a,b,y\n1,u,no\n3,v,yes\n5,u,yes\n7,w,no\n";

TEST(TableSource, MakesSamplesOfTheSelectedRows) {
  const TestFolder folder;
  spec::DataSource source = table(folder.write("t.csv", kFourRows));
  source.take = 2;
  const auto dataset = open_dataset(source);
  EXPECT_EQ(dataset->size(), 2u);
  EXPECT_THAT(dataset->format().shape, ElementsAre(4));
  EXPECT_THAT(dataset->format().classes, ElementsAre("no", "yes"));
  EXPECT_EQ(dataset->label_kind(), compute::LabelKind::classes);
  EXPECT_THAT(labels_in(*dataset), ElementsAre(0, 1));
  EXPECT_THAT(features_of(*dataset, 0), ElementsAre(-1, 1, 0, 0));
  EXPECT_THAT(features_of(*dataset, 1), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(dataset->describe(1), testing::EndsWith("t.csv"));
}

TEST(TableSource, PreparesDataForEvaluationByTheTrainingData) {
  const TestFolder folder;
  spec::DataSource train = table(folder.write("t.csv", kFourRows));
  train.take = 2;
  spec::DataSource rest = train;
  rest.skip = 2;
  spec::train_on(train, rest);
  const auto dataset = open_dataset(rest);
  EXPECT_THAT(features_of(*dataset, 0), ElementsAre(3, 1, 0, 0));
  EXPECT_THAT(features_of(*dataset, 1), ElementsAre(5, 0, 0, 1));  // w was not trained on
}

TEST(TableSource, NeedsNoTrainingDataWithThePreparationOfAModel) {
  const TestFolder folder;
  spec::DataSource train = table(folder.write("t.csv", kFourRows));
  train.take = 2;
  const Json kept = open_dataset(train)->format().table;
  std::filesystem::remove(folder.path() / "t.csv");
  spec::DataSource test = table(folder.write("test.csv", "y,b,a\nyes,v,9\n"));
  spec::train_on(train, test);
  of(test).prepared = kept;
  const auto dataset = open_dataset(test);
  EXPECT_THAT(features_of(*dataset, 0), ElementsAre(7, 0, 1, 0));
  EXPECT_THAT(labels_in(*dataset), ElementsAre(1));
}

TEST(TableSource, HasNumbersAsTargets) {
  const TestFolder folder;
  const auto dataset = open_dataset(table(folder.write("t.csv", "a,y\n1,10\n3,-2.5\n"), false));
  EXPECT_EQ(dataset->label_kind(), compute::LabelKind::floats);
  EXPECT_EQ(dataset->label_count(), 1);
  EXPECT_EQ(*filled(*dataset, 1).target, -2.5f);
}

TEST(TableSource, NamesTheRowWhoseTargetTheLossDoesNotTake) {
  const TestFolder folder;
  const auto dataset = open_dataset(table(folder.write("t.csv", "a,y\n1,1\n3,-2.5\n"), false));
  require_targets_within(*dataset, -3, 1);
  const auto refusal = [&](float least, float most) {
    return test::error_of([&] { require_targets_within(*dataset, least, most); });
  };
  EXPECT_THAT(refusal(0, 1), testing::ContainsRegex(
                                 "sample 1 of .*t.csv: expected a target from 0 to 1, found -2.5"));
  EXPECT_THAT(refusal(-3, 0.5f), testing::HasSubstr("expected a target from -3 to 0.5, found 1"));
}

TEST(TableSource, MixesTheRowsOfASortedFileInTheSameWayEachTime) {
  const TestFolder folder;
  std::string csv = "a,y\n";
  for (int i = 0; i < 40; ++i) csv += std::to_string(i) + (i < 20 ? ",x\n" : ",z\n");
  spec::DataSource first = table(folder.write("t.csv", csv));
  of(first).order = spec::RowOrder::mixed;
  first.split_fraction = 0.5;
  spec::DataSource rest = first;
  rest.split_part = spec::SplitPart::rest;
  const auto a = open_dataset(first), b = open_dataset(rest);
  const auto ones = std::ranges::count(labels_in(*a), 1);
  EXPECT_GT(ones, 4);
  EXPECT_LT(ones, 16);
  EXPECT_EQ(ones + std::ranges::count(labels_in(*b), 1), 20);
  EXPECT_EQ(labels_in(*open_dataset(first)), labels_in(*a));
}

// The inputs of all samples of a part, which have one input each.
std::vector<float> inputs_of(spec::DataSource source, spec::SplitPart part) {
  source.split_fraction = 0.5;
  source.split_part = part;
  const auto dataset = open_dataset(source);
  std::vector<float> inputs;
  for (uint64_t i = 0; i < dataset->size(); ++i) inputs.push_back(features_of(*dataset, i)[0]);
  return inputs;
}

TEST(TableSource, DividesByTheRisingValuesOfAColumn) {
  const TestFolder folder;
  const char* const numbers = "a,at,y\n1,30,x\n2,10,x\n3,20,x\n4,15,x\n";
  const char* const texts = "a,at,y\n1,2024-03,x\n2,2023-12,x\n3,2024-02,x\n4,2024-01,x\n";
  for (const char* csv : {numbers, texts}) {
    spec::DataSource source = table(folder.write("t.csv", csv));
    of(source).features = {feature("a")};
    of(source).order = spec::RowOrder::by_value;
    of(source).order_column = "at";
    EXPECT_THAT(inputs_of(source, spec::SplitPart::first), ElementsAre(2, 4));
    EXPECT_THAT(inputs_of(source, spec::SplitPart::rest), ElementsAre(3, 1));
  }
  spec::DataSource source = table(folder.write("t.csv", "a,at,y\n1,5,x\n2,,x\n"));
  of(source).order = spec::RowOrder::by_value;
  of(source).order_column = "at";
  EXPECT_THAT(test::error_of([&] { open_dataset(source); }),
              HasSubstr("row 2, column at: expected a value, which decides the order of the rows"));
}

TEST(TableSource, DividesNoGroup) {
  const TestFolder folder;
  std::string csv = "a,who,y\n";
  for (int i = 0; i < 60; ++i) csv += fmt::format("{},p{},x\n", i, i % 7);
  spec::DataSource source = table(folder.write("t.csv", csv));
  of(source).features = {feature("a")};
  of(source).order = spec::RowOrder::by_group;
  of(source).order_column = "who";
  const std::vector<float> first = inputs_of(source, spec::SplitPart::first);
  const std::vector<float> rest = inputs_of(source, spec::SplitPart::rest);
  EXPECT_EQ(first.size() + rest.size(), 60u);
  EXPECT_THAT(first.size(), AllOf(Ge(30u), Lt(40u)));
  std::set<int> groups;
  for (const float a : first) groups.insert(static_cast<int>(a) % 7);
  for (const float a : rest) EXPECT_FALSE(groups.contains(static_cast<int>(a) % 7)) << a;
}

TEST(TableSource, GoesOnWithLaterData) {
  const TestFolder folder;
  spec::TableFeature spare = feature("a");
  spare.spare_values = 1;
  const auto source = [&](const char* csv) {
    spec::DataSource later = table(folder.write("t.csv", csv));
    of(later).features = {spare};
    return later;
  };
  const Json kept = open_dataset(source("a,y\nr,p\ns,q\n"))->format().table;
  EXPECT_EQ(continue_preparation(source("a,y\nr,p\ns,q\n"), kept), kept);
  spec::DataSource later = source("a,y\nu,q\nt,p\nt,p\n");
  const Json next = continue_preparation(later, kept);
  EXPECT_EQ(next["columns"][0]["values"], Json({"r", "s", "t"}));
  EXPECT_EQ(continue_preparation(later, next), next);
  of(later).prepared = next;
  const auto dataset = open_dataset(later);
  EXPECT_THAT(features_of(*dataset, 0), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(features_of(*dataset, 1), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(dataset->format().classes, ElementsAre("p", "q"));
}

TEST(TableSource, BringsNoValuesToAFrozenFeature) {
  const TestFolder folder;
  spec::TableFeature spare = feature("a"), frozen = feature("b");
  spare.spare_values = frozen.spare_values = 1;
  const auto source = [&](const char* name, const char* csv) {
    spec::DataSource later = table(folder.write(name, csv));
    of(later).features = {spare, frozen};
    return later;
  };
  const Json kept = open_dataset(source("1.csv", "a,b,y\nr,r,p\ns,s,q\n"))->format().table;
  frozen.freeze = true;
  const char* later = "a,b,y\nt,t,q\nt,t,p\n";  // as many bytes as the first file has
  const Json next = continue_preparation(source("2.csv", later), kept);
  EXPECT_EQ(next["columns"][0]["values"], Json({"r", "s", "t"}));
  EXPECT_EQ(next["columns"][1], kept["columns"][1]);
  spare.freeze = true;
  EXPECT_EQ(continue_preparation(source("2.csv", later), kept), kept);
}

TEST(TableSource, WeighsTheRowsThatItTrainsOn) {
  const TestFolder folder;
  spec::DataSource train = table(folder.write("t.csv", "w,a,y\n0,1,p\n2.5,3,q\n"));
  of(train).weight_column = "w";
  const auto dataset = open_dataset(train);
  EXPECT_THAT(dataset->format().shape, ElementsAre(1));  // no feature
  EXPECT_TRUE(dataset->has_weights());
  EXPECT_EQ(filled(*dataset, 0).weight, 0);
  EXPECT_EQ(filled(*dataset, 1).weight, 2.5f);
  spec::DataSource test = table(folder.write("test.csv", "a,y\n1,p\n"));
  spec::train_on(train, test);
  EXPECT_FALSE(open_dataset(test)->has_weights());
  of(train).prepared = dataset->format().table;  // as a model that goes on has it
  EXPECT_EQ(filled(*open_dataset(train), 1).weight, 2.5f);
}

TEST(TableSource, RefusesAWeightThatIsNone) {
  const TestFolder folder;
  const auto refusal = [&](const std::string& weight) {
    spec::DataSource source = table(folder.write("t.csv", "w,a,y\n1,1,p\n" + weight + ",3,q\n"));
    of(source).weight_column = "w";
    return test::error_of([&] { open_dataset(source); });
  };
  EXPECT_THAT(refusal("-1"), HasSubstr("t.csv, line 3, column w: expected a weight, which is a "
                                       "float of 0 or more, found -1"));
  EXPECT_THAT(refusal(""), HasSubstr("line 3, column w: expected a weight, which is a float of 0 "
                                     "or more, found an empty cell"));
  EXPECT_THAT(refusal("NaN"), HasSubstr("line 3, column w: expected a weight"));
  EXPECT_THAT(refusal("inf"), HasSubstr("line 3, column w: expected"));
  EXPECT_THAT(refusal("1e300"), HasSubstr("line 3, column w: expected a weight"));
  EXPECT_THAT(refusal("much"), HasSubstr("line 3, column w: expected"));
}

TEST(TableSource, NamesTheGroupsInWhichAnEvaluationRanks) {
  const TestFolder folder;
  const spec::DataSource train = table(folder.write("t.csv", "a,y\n1,0\n3,1\n"), false);
  EXPECT_EQ(open_dataset(train)->rank_at(), 0);
  const auto ranked = [&](const char* csv) {
    spec::DataSource test = table(folder.write("test.csv", csv), false);
    spec::train_on(train, test);
    of(test).group_column = "u";
    of(test).rank_at = 3;
    return test;
  };
  const auto dataset = open_dataset(ranked("u,a,y\n7,1,0\n8,2,0\n7,3,1\n"));
  EXPECT_EQ(dataset->rank_at(), 3);
  EXPECT_EQ(filled(*dataset, 0).group, filled(*dataset, 2).group);
  EXPECT_NE(filled(*dataset, 0).group, filled(*dataset, 1).group);
  EXPECT_THAT(test::error_of([&] { open_dataset(ranked("u,a,y\n7,1,0\n,2,0\n")); }),
              HasSubstr("test.csv, line 3, column u: expected the group in which the row is "
                        "ranked, found an empty cell"));
  EXPECT_THAT(look_at(ranked("a,y\n1,0\n"))->malformed, HasSubstr("expected a column named \"u\""));
}

TEST(TableSource, KeepsSamplesInATemporaryFileToo) {
  const TestFolder folder;
  spec::DataSource source = table(folder.write("t.csv", kFourRows));
  source.cache = false;
  EXPECT_EQ(open_dataset(source)->effort(), Effort::waiting);
}

TEST(TableSource, IsSharedByFile) {
  const TestFolder folder;
  folder.write("1.csv", "a,y\n1,x\n2,x\n");
  folder.write("2.csv", "a,y\n3,z\n");
  spec::DataSource source = table(folder.path() / "*.csv");
  source.shard = spec::ShardBy::file;
  const TrainingData first = open_training_data(source, {0, 1, 2}, {.rows = 1});
  const TrainingData second = open_training_data(source, {1, 1, 2}, {.rows = 1});
  EXPECT_THAT(labels_in(*first.samples), ElementsAre(0, 0));
  EXPECT_THAT(labels_in(*second.samples), ElementsAre(1));
  EXPECT_EQ(first.samples->format(), second.samples->format());  // of all files
}

TEST(TableSource, IsReadAgainIfAFileHasChanged) {
  const TestFolder folder;
  const spec::DataSource source = table(folder.write("t.csv", kFourRows));
  EXPECT_EQ(open_dataset(source)->size(), 4u);
  folder.write("t.csv", "a,y\n1,no\n");
  EXPECT_EQ(open_dataset(source)->size(), 1u);
}

TEST(LookAtTable, SaysWhatTheModelMustKnow) {
  const TestFolder folder;
  spec::DataSource source = table(folder.write("t.csv", kFourRows));
  const auto facts = look_at(source);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->samples, 4u);
  EXPECT_THAT(facts->sample_shape, ElementsAre(5));
  EXPECT_EQ(facts->label_count, 2);
  of(source).target.columns = {"z"};
  EXPECT_THAT(look_at(source)->malformed, HasSubstr("t.csv: expected a column named \"z\", found"));
  of(source).files = {folder.path() / "none.csv"};
  EXPECT_FALSE(look_at(source));
  EXPECT_EQ(unreadable_files(source)[0].field, "files");
}

TEST(LookAtTable, RefusesFilesWithoutRows) {
  const TestFolder folder;
  EXPECT_THAT(look_at(table(folder.write("t.csv", "a,y\n")))->malformed,
              HasSubstr("t.csv: expected rows, found none"));
}

}  // namespace
}  // namespace muster::data
