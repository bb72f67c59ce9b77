#include "trainer/data/tables/numpy_table.h"

#include <cmath>

#include "common/error.h"
#include "common/system/file.h"
#include "gmock/gmock.h"
#include "tests/unit/common/error_of.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

const std::string kNumpy = std::string(MUSTER_SOURCE_DIR) + "/tests/fixtures/tables/";

std::unique_ptr<const tables::Table> numpy(const std::string& name) {
  return parse_numpy(read_file(kNumpy + name), name);
}

std::vector<double> numbers_of(const tables::Table& table, size_t column) {
  std::vector<double> cells(table.rows_of_blocks()[0]);
  table.read_numbers(0, column, cells);
  return cells;
}

std::vector<std::string> names_of(const tables::Table& table) {
  std::vector<std::string> names;
  for (const tables::ColumnInfo& column : table.columns()) names.push_back(column.name);
  return names;
}

std::string numpy_error(const std::string& content) {
  return test::error_of([&] { parse_numpy(content, "a.npy"); });
}

TEST(Numpy, ReadsRowsAndColumnsInBothOrders) {
  for (const char* name : {"matrix.npy", "by_columns.npy", "big_endian.npy"}) {
    const auto table = numpy(name);
    EXPECT_THAT(names_of(*table), ElementsAre("column1", "column2", "column3"));
    EXPECT_THAT(numbers_of(*table, 0), ElementsAre(0, 3)) << name;
    EXPECT_THAT(numbers_of(*table, 2), ElementsAre(2, 5)) << name;
  }
}

TEST(Numpy, ReadsArraysOfAZipFile) {
  for (const char* name : {"stored.npz", "packed.npz"}) {
    const auto table = numpy(name);
    EXPECT_THAT(names_of(*table), ElementsAre("X1", "X2", "y", "is", "half", "large"));
    EXPECT_THAT(numbers_of(*table, 1), ElementsAre(1.5, IsNan(), -2));
    EXPECT_THAT(numbers_of(*table, 2), ElementsAre(-1, 0, 127));
    EXPECT_THAT(numbers_of(*table, 3), ElementsAre(1, 0, 1));
    EXPECT_THAT(numbers_of(*table, 4), ElementsAre(0.5, -65504, std::ldexp(1, -24)));
    std::vector<double> cells(3);
    EXPECT_EQ(table->read_numbers(0, 5, cells), 1);
    EXPECT_THAT(table->read_texts(0, 5).values, ElementsAre("1", "18446744073709551615", "3"));
    EXPECT_THAT(table->read_texts(0, 3).values, ElementsAre("true", "false"));
    EXPECT_THAT(table->read_texts(0, 1).cells, ElementsAre(0, -1, 1));
  }
}

TEST(Numpy, RefusesWhatIsNoTableOfNumbers) {
  EXPECT_THAT(test::error_of([] { numpy("texts.npy"); }),
              HasSubstr("texts.npy: expected numbers or booleans, found the type '<U1'"));
  EXPECT_THAT(test::error_of([] { numpy("cube.npy"); }),
              HasSubstr("cube.npy: expected one or two axes, found another shape"));
  EXPECT_THAT(test::error_of([] { numpy("lengths.npz"); }),
              HasSubstr("array b: expected 2 rows, as array a has, found 3"));
  EXPECT_THAT(numpy_error("no array"), HasSubstr("a.npy: expected an array of NumPy"));
}

TEST(Numpy, RefusesDamagedFilesOfAnyLength) {
  for (const char* name : {"matrix.npy", "stored.npz", "packed.npz"}) {
    const std::string whole = read_file(kNumpy + name);
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_NE(numpy_error(whole.substr(0, size)), "no error") << name << " " << size;
  }
  std::string flipped = read_file(kNumpy + "packed.npz");
  flipped[120] ^= 1;
  EXPECT_THAT(numpy_error(flipped), HasSubstr("expected the bytes of an entry"));
}

}  // namespace
}  // namespace muster::data
