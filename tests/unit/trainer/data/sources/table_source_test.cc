#include "trainer/data/sources/table_source.h"

#include "gmock/gmock.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "trainer/data/sources/look.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

spec::DataSource table(const std::filesystem::path& file, bool is_class = true) {
  spec::DataSource source;
  spec::TableSource table;
  table.files = {file};
  table.target = {"y", is_class, spec::Transform::none};
  source.kind = table;
  return source;
}

spec::TableSource& of(spec::DataSource& source) {
  return std::get<spec::TableSource>(source.kind);
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
  of(first).mixed = true;
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
  of(source).target.column = "z";
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
