#include "trainer/data/sources/source.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "common/error.h"
#include "common/system/file.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(IdxSource, ReadsTheMnistOfTheExamples) {
  const std::string folder = std::string(MUSTER_SOURCE_DIR) + "/examples/data/mnist/";
  spec::DataSource source =
      idx(folder + "train-images-idx3-ubyte.gz", folder + "train-labels-idx1-ubyte.gz");
  source.skip = 50000;
  source.take = 10000;
  const auto dataset = open_dataset(source);
  EXPECT_EQ(dataset->size(), 10000u);
  EXPECT_THAT(dataset->format().shape, ElementsAre(28, 28));
  EXPECT_EQ(dataset->label_count(), 10);
  EXPECT_EQ(dataset->label_kind(), compute::LabelKind::classes);
  EXPECT_EQ(dataset->format().type, compute::ElementType::uint8);
  EXPECT_FLOAT_EQ(dataset->format().scale, 1.0f / 255.0f);
  EXPECT_EQ(dataset->format().offset, 0.0f);
  std::vector<int> seen(10);
  for (uint64_t i = 0; i < dataset->size(); ++i) ++seen[static_cast<size_t>(dataset->label(i))];
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 800);
}

TEST(IdxSource, PairsImagesWithTheirLabels) {
  const TestFolder folder;
  spec::DataSource source =
      idx(folder.write("i", images_2x3(4)), folder.write("l", labels_of({5, 6, 7, 8})));
  source.skip = 1;
  source.take = 2;
  const auto dataset = open_dataset(source);
  EXPECT_EQ(dataset->size(), 2u);
  EXPECT_EQ(static_cast<const uint8_t*>(filled(*dataset, 1).features)[0], 12);
  EXPECT_EQ(dataset->label(1), 7);
  EXPECT_EQ(dataset->label_count(), 9);  // of the file, not of the part
}

TEST(IdxSource, ReadsImagesWithoutLabels) {
  const TestFolder folder;
  const auto dataset = open_dataset(idx(folder.write("i", images_2x3(4)), ""));
  EXPECT_EQ(dataset->label_kind(), compute::LabelKind::floats);
  EXPECT_EQ(dataset->label_count(), 0);
  EXPECT_EQ(filled(*dataset, 0).target, nullptr);
}

TEST(IdxSource, NamesAMissingFile) {
  const TestFolder folder;
  const auto missing = folder.path() / "none.gz";
  EXPECT_THAT(error_of(idx(missing, missing)), HasSubstr(missing.string()));
  EXPECT_THAT(error_of(idx(missing, missing)), HasSubstr("no such file"));
  EXPECT_THAT(error_of(idx(folder.path(), missing)), HasSubstr("no regular file"));
}

TEST(IdxSource, NamesBothFilesWhereTheirCountsDiffer) {
  const TestFolder folder;
  const std::string message =
      error_of(idx(folder.write("i", images_2x3(4)), folder.write("l", labels_of({1, 2, 3}))));
  EXPECT_THAT(message, HasSubstr("l has 3 labels"));
  EXPECT_THAT(message, HasSubstr("i has 4 images"));
}

// Three files of 4, 1 and 3 samples; a label says file and sample: 10, 11, 12, 13, 20, 30, 31, 32.
spec::DataSource three_files(const TestFolder& folder) {
  spec::DataSource source =
      idx(folder.write("i0", images_2x3(4)), folder.write("l0", labels_of({10, 11, 12, 13})));
  std::get<spec::IdxSource>(source.kind).listed = true;
  std::get<spec::IdxSource>(source.kind)
      .files.push_back(
          {folder.write("i1", gzip(images_2x3(1))), folder.write("l1", labels_of({20}))});
  std::get<spec::IdxSource>(source.kind)
      .files.push_back(
          {folder.write("i2", images_2x3(3)), folder.write("l2", labels_of({30, 31, 32}))});
  return source;
}

std::vector<int> all_labels(const Dataset& dataset) {
  std::vector<int> labels;
  for (uint64_t i = 0; i < dataset.size(); ++i) labels.push_back(dataset.label(i));
  return labels;
}

TEST(SeveralFiles, AreNumberedThroughInTheirOrder) {
  const TestFolder folder;
  const auto dataset = open_dataset(three_files(folder));
  EXPECT_THAT(all_labels(*dataset), ElementsAre(10, 11, 12, 13, 20, 30, 31, 32));
  EXPECT_THAT(dataset->format().shape, ElementsAre(2, 3));
  const auto first_pixel = [&](uint64_t i) {
    return static_cast<const uint8_t*>(filled(*dataset, i).features)[0];
  };
  EXPECT_EQ(first_pixel(3), 18);
  EXPECT_EQ(first_pixel(4), 0);
  EXPECT_EQ(first_pixel(7), 12);
}

TEST(SeveralFiles, AreSelectedFromAsAWhole) {
  const TestFolder folder;
  spec::DataSource source = three_files(folder);
  source.skip = 3;
  source.take = 4;
  EXPECT_THAT(all_labels(*open_dataset(source)), ElementsAre(13, 20, 30, 31));
  source.split_fraction = 0.5;
  EXPECT_THAT(all_labels(*open_dataset(source)), ElementsAre(13, 20));
  source.split_part = spec::SplitPart::rest;
  const auto dataset = open_dataset(source);
  EXPECT_THAT(all_labels(*dataset), ElementsAre(30, 31));
  EXPECT_EQ(dataset->label_count(), 33);  // of all files
  EXPECT_THAT(dataset->describe(1), testing::EndsWith("l2"));
  EXPECT_THAT(dataset->describe(1), testing::StartsWith("sample 1 of "));
  source.skip = 8;
  EXPECT_THAT(error_of(source), HasSubstr("i0 and 2 more files: skip: expected less than its 8"));
}

// Of three files with samples the first and third are replica 0's.
TEST(SharedByFile, AReplicaReadsWhatIsItsOwn) {
  const TestFolder folder;
  spec::DataSource source = three_files(folder);
  source.shard = spec::ShardBy::file;
  source.skip = 1;
  const TrainingData first = open_training_data(source, {0, 1, 2}, {.rows = 2});
  EXPECT_THAT(all_labels(*first.samples), ElementsAre(11, 12, 13, 30, 31, 32));
  EXPECT_EQ(first.shards.batches_per_epoch(), 5u);  // 0, 2 and 4 are its own
  const TrainingData second = open_training_data(source, {1, 1, 2}, {.rows = 2});
  EXPECT_THAT(all_labels(*second.samples), ElementsAre(20));
  EXPECT_EQ(second.samples->label_count(), 33);  // of all files
  EXPECT_EQ(second.shards.batches_per_epoch(), 5u);
  const TrainingData both = open_training_data(source, {0, 2, 2}, {.rows = 2});
  EXPECT_THAT(all_labels(*both.samples), ElementsAre(11, 12, 13, 30, 31, 32, 20));
}

TEST(SharedByFile, AnothersPixelsAreNotRead) {
  const TestFolder folder;
  spec::DataSource source = three_files(folder);
  source.shard = spec::ShardBy::file;
  folder.write("i2", images_2x3(3) + "too much");
  EXPECT_NO_THROW(open_training_data(source, {1, 1, 2}, {.rows = 2}));
  EXPECT_THROW(open_training_data(source, {0, 1, 2}, {.rows = 2}), Invalid);
}

TEST(SharedByFile, NeedsAFileForEachReplica) {
  const TestFolder folder;
  spec::DataSource source = three_files(folder);
  source.shard = spec::ShardBy::file;
  source.skip = 4;
  EXPECT_NO_THROW(open_training_data(source, {1, 1, 2}, {.rows = 2}));
  try {
    open_training_data(source, {0, 1, 3}, {.rows = 2});
    ADD_FAILURE() << "no error";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected at least 3 files with samples"));
    EXPECT_THAT(error.what(), testing::EndsWith("found 2"));
  }
}

TEST(SeveralFiles, OfDifferentShapesAreRefusedNamingBoth) {
  const TestFolder folder;
  spec::DataSource source = three_files(folder);
  std::get<spec::IdxSource>(source.kind).files[2].images =
      folder.write("odd", word(0x0803) + word(1) + word(3) + word(2) + std::string(6, ' '));
  EXPECT_THAT(error_of(source), testing::AllOf(HasSubstr("odd: expected samples of [2, 3] as in "),
                                               HasSubstr("i0"), HasSubstr("found [3, 2]")));
}

TEST(SeveralFiles, MustAgreeInTheirCountsByPair) {
  const TestFolder folder;
  spec::DataSource source = three_files(folder);
  std::swap(std::get<spec::IdxSource>(source.kind).files[1].labels,
            std::get<spec::IdxSource>(source.kind).files[2].labels);  // as many in all
  EXPECT_THAT(error_of(source),
              testing::AllOf(HasSubstr("l2 has 3 labels"), HasSubstr("i1 has 1 images")));
}

TEST(SeveralFiles, MayBeTenThousand) {
  const TestFolder folder;
  spec::DataSource source =
      idx(folder.write("i", images_2x3(2)), folder.write("l", labels_of({4, 2})));
  std::get<spec::IdxSource>(source.kind)
      .files.resize(10'000, std::get<spec::IdxSource>(source.kind).files.front());
  source.skip = 1;
  const auto dataset = open_dataset(source);
  EXPECT_EQ(dataset->size(), 19'999u);
  EXPECT_EQ(dataset->label(0), 2);
  EXPECT_EQ(dataset->label(19'998), 2);
  EXPECT_EQ(static_cast<const uint8_t*>(filled(*dataset, 19'998).features)[5], 11);
}

TEST(Labels, OutOfRangeNamesSampleFileAndClasses) {
  const TestFolder folder;
  spec::DataSource source =
      idx(folder.write("i", images_2x3(4)), folder.write("l", labels_of({1, 2, 12, 3})));
  source.skip = 1;
  const auto dataset = open_dataset(source);
  EXPECT_NO_THROW(require_labels_below(*dataset, 13));
  try {
    require_labels_below(*dataset, 10);
    ADD_FAILURE() << "no error";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("label 12 of sample 2 of"));
    EXPECT_THAT(error.what(), HasSubstr("out of range for 10 classes (0 to 9)"));
  }
}

spec::DataSource linear(int64_t samples) {
  spec::DataSource source;
  source.kind = spec::LinearSource{samples};
  return source;
}

float value(const Dataset& dataset, uint64_t index, size_t feature = 0) {
  return static_cast<const float*>(filled(dataset, index).features)[feature];
}

// Kept in a mapped file instead of memory: the same samples, and no file to be seen.
TEST(Cache, OffKeepsTheSameSamples) {
  const TestFolder folder;
  setenv("TMPDIR", folder.path().c_str(), 1);
  spec::DataSource uncached = linear(1000);
  uncached.cache = false;
  const auto a = open_dataset(linear(1000));
  const auto b = open_dataset(uncached);
  unsetenv("TMPDIR");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(value(*a, i), value(*b, i));
}

TEST(Cache, OffRefusesAFolderThatCannotBeWrittenOrIsMissing) {
  spec::DataSource uncached = linear(1000);
  uncached.cache = false;
  for (const char* folder : {"/proc", "/no/such/folder"}) {
    setenv("TMPDIR", folder, 1);
    EXPECT_THAT([&] { open_dataset(uncached); },
                testing::ThrowsMessage<WriteError>(HasSubstr(folder)));
  }
  unsetenv("TMPDIR");
}

TEST(SyntheticLinear, LiesAroundTheLine) {
  const auto dataset = open_dataset(linear(20000));
  EXPECT_THAT(dataset->format().shape, ElementsAre(1));
  EXPECT_EQ(dataset->label_count(), 1);
  EXPECT_EQ(dataset->label_kind(), compute::LabelKind::floats);
  double sum = 0, squares = 0, x_sum = 0, x_squares = 0;
  for (uint64_t i = 0; i < dataset->size(); ++i) {
    const double x = value(*dataset, i);
    const double residual = *filled(*dataset, i).target - (2 * x + 10);
    sum += residual;
    squares += residual * residual;
    x_sum += x;
    x_squares += x * x;
  }
  const double n = 20000;
  EXPECT_NEAR(sum / n, 0.0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / n), 0.33, 0.01);
  EXPECT_NEAR(x_sum / n, 0.0, 0.03);
  EXPECT_NEAR(std::sqrt(x_squares / n), 1.0, 0.02);
}

TEST(SyntheticLinear, SampleIsAFunctionOfSeedAndIndex) {
  spec::DataSource part = linear(100);
  part.skip = 40;
  part.take = 10;
  const auto whole = open_dataset(linear(100));
  const auto some = open_dataset(part);
  EXPECT_EQ(some->size(), 10u);
  EXPECT_EQ(value(*some, 3), value(*whole, 43));
  EXPECT_EQ(*filled(*some, 3).target, *filled(*whole, 43).target);
  std::get<spec::LinearSource>(part.kind).seed = 2;
  EXPECT_NE(value(*open_dataset(part), 3), value(*whole, 43));
}

spec::DataSource blobs(int64_t samples, double density) {
  spec::DataSource source;
  source.kind = spec::ClassesSource{samples, {4, 5}, 3, density};
  return source;
}

double share_of_zeros(const Dataset& dataset) {
  double zeros = 0;
  for (uint64_t i = 0; i < dataset.size(); ++i) {
    for (size_t f = 0; f < 20; ++f) zeros += value(dataset, i, f) == 0.0f;
  }
  return zeros / (static_cast<double>(dataset.size()) * 20);
}

TEST(SyntheticClasses, HasTheDensityAskedFor) {
  EXPECT_EQ(share_of_zeros(*open_dataset(blobs(2000, 1.0))), 0.0);
  EXPECT_NEAR(share_of_zeros(*open_dataset(blobs(2000, 0.2))), 0.8, 0.01);
}

TEST(SyntheticClasses, DrawsLabelsEvenlyAndValuesInSteps) {
  const auto dataset = open_dataset(blobs(3000, 1.0));
  EXPECT_EQ(dataset->label_count(), 3);
  EXPECT_EQ(dataset->format().type, compute::ElementType::float32);
  EXPECT_EQ(dataset->format().scale, 1.0f);
  std::vector<int> seen(3);
  for (uint64_t i = 0; i < dataset->size(); ++i) {
    ++seen[static_cast<size_t>(dataset->label(i))];
    ASSERT_EQ(value(*dataset, i) * 256.0f, std::round(value(*dataset, i) * 256.0f));
  }
  for (const int count : seen) EXPECT_NEAR(count, 1000, 100);
}

// A class's mean is its centre: means of different classes are far apart, halves of one class are
// not.
TEST(SyntheticClasses, FormsBlobs) {
  const auto dataset = open_dataset(blobs(6000, 1.0));
  std::vector<std::vector<double>> mean(6, std::vector<double>(20));
  std::vector<double> count(6);
  for (uint64_t i = 0; i < dataset->size(); ++i) {
    const size_t group = static_cast<size_t>(dataset->label(i)) * 2 + i % 2;
    ++count[group];
    for (size_t f = 0; f < 20; ++f) mean[group][f] += value(*dataset, i, f);
  }
  auto distance = [&](size_t a, size_t b) {
    double sum = 0;
    for (size_t f = 0; f < 20; ++f) {
      sum += std::pow(mean[a][f] / count[a] - mean[b][f] / count[b], 2);
    }
    return std::sqrt(sum);
  };
  EXPECT_LT(distance(0, 1), 0.5);
  EXPECT_GT(distance(0, 2), 3.0);
  EXPECT_GT(distance(2, 4), 3.0);
}

TEST(Synthetic, RefusesWhatCannotBe) {
  spec::DataSource huge = blobs(1'000'000'000, 1.0);
  EXPECT_THAT(error_of(huge), HasSubstr("more than 8 GiB"));
  EXPECT_THAT(error_of(linear(0)), HasSubstr("samples: expected at least 1, found 0"));
  spec::DataSource none = linear(10);
  none.skip = 10;
  EXPECT_THAT(error_of(none), HasSubstr("skip: expected less than its 10 samples"));
  none.skip = 4;
  none.take = 7;
  EXPECT_THAT(error_of(none), HasSubstr("from 1 to 6"));
  spec::DataSource classless = blobs(10, 1.0);
  std::get<spec::ClassesSource>(classless.kind).classes = 0;
  EXPECT_THAT(error_of(classless), HasSubstr("classes of at least 1"));
}

}  // namespace
}  // namespace muster::data
