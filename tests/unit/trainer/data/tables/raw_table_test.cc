#include "trainer/data/tables/raw_table.h"

#include <chrono>
#include <cmath>
#include <filesystem>

#include "gmock/gmock.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/trainer/data/idx_files.h"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsNan;
using testing::StartsWith;

const std::string kFixtures = std::string(MUSTER_SOURCE_DIR) + "/tests/fixtures/tables/";

spec::TableSource files(std::vector<std::filesystem::path> paths) {
  spec::TableSource source;
  source.files = std::move(paths);
  return source;
}

RawRows read(const spec::TableSource& source) {
  return read_all(source, {.all = true, .columns = {}});
}
RawRows read(const spec::TableSource& source, std::vector<WantedColumn> columns) {
  return read_all(source, {.all = false, .columns = std::move(columns)});
}

template <typename... Arguments>
std::string refusal(const Arguments&... arguments) {
  try {
    read(arguments...);
  } catch (const Invalid& error) {
    return error.what();
  }
  return "no error";
}

// Returns the place of a row, as messages name it.
std::string place(const RawRows& rows, uint64_t row) {
  return test::error_of([&] { rows.refuse(row, "c", "x", "y"); });
}

std::vector<std::string> names(const RawRows& table) {
  std::vector<std::string> names;
  for (const RawColumn& column : table.columns) names.push_back(column.name);
  return names;
}

std::vector<std::string> texts(const RawColumn& column) {
  std::vector<std::string> texts;
  for (const int32_t cell : column.cells)
    texts.push_back(cell < 0 ? "(none)" : column.values[static_cast<size_t>(cell)]);
  return texts;
}

// Writes a file over another one, whose time of the last change it keeps.
void rewrite(const TestFolder& folder, const std::filesystem::path& file, const std::string& text,
             std::chrono::seconds later) {
  const auto time = std::filesystem::last_write_time(file);
  folder.write(file.filename().string(), text);
  std::filesystem::last_write_time(file, time + later);
}

TEST(RawTable, ReadsAFileOnceForReadersThatFollowEachOther) {
  const TestFolder folder;
  const auto file = folder.write("a.csv", "age,name\n1,x\n");
  EXPECT_THAT(read(files({file})).columns[0].numbers, ElementsAre(1));
  // Only who reads the file anew sees the other number.
  rewrite(folder, file, "age,name\n2,x\n", std::chrono::seconds(0));
  EXPECT_THAT(read(files({file})).columns[0].numbers, ElementsAre(1));
  EXPECT_THAT(texts(read(files({file}), {{"name", FeatureKind::category}}).columns[0]),
              ElementsAre("x"));
  EXPECT_THAT(read(files({file}), {{"age", FeatureKind::number}}).columns[0].numbers,
              ElementsAre(1));
  close_tables();
  EXPECT_THAT(read(files({file})).columns[0].numbers, ElementsAre(2));
}

TEST(RawTable, ReadsAFileAgainThatHasChangedOrIsReadInAnotherWay) {
  const TestFolder folder;
  const auto file = folder.write("a.csv", "age,name\n01,x\n");
  EXPECT_THAT(read(files({file})).columns[0].numbers, ElementsAre(1));
  EXPECT_THAT(texts(read(files({file}), {{"age", FeatureKind::category}}).columns[0]),
              ElementsAre("01"));
  EXPECT_THAT(read(files({file})).columns[0].numbers, ElementsAre(1));
  rewrite(folder, file, "age,name\n03,x\n", std::chrono::seconds(1));
  EXPECT_THAT(read(files({file})).columns[0].numbers, ElementsAre(3));
  spec::TableSource other = files({file});
  other.format.header = false;
  EXPECT_THAT(texts(read(other, {{"column2", std::nullopt}}).columns[0]), ElementsAre("name", "x"));
}

TEST(RawTable, NumbersManyDifferentTexts) {
  const TestFolder folder;
  std::string csv = "name\n";
  for (int i = 0; i < 1000; ++i) csv += "n" + std::to_string(i % 500) + "\n";
  const RawRows table = read(files({folder.write("a.csv", csv)}));
  const RawColumn& column = table.columns[0];
  ASSERT_EQ(column.values.size(), 500u);
  for (size_t row = 0; row < 1000; ++row) {
    EXPECT_EQ(column.cells[row], static_cast<int32_t>(row % 500));
    EXPECT_EQ(column.values[row % 500], "n" + std::to_string(row % 500));
  }
}

TEST(RawTable, FindsTheTypesOfCsv) {
  const TestFolder folder;
  const RawRows table = read(files({folder.write(
      "a.csv", "age,name,is,at\n1,x,true,1970-01-01 00:01:00\n2.5,y,false,\n,,,1970-01-02\n")}));
  EXPECT_THAT(names(table), ElementsAre("age", "name", "is", "at"));
  EXPECT_THAT(table.columns[0].numbers, ElementsAre(1, 2.5, IsNan()));
  EXPECT_THAT(texts(table.columns[1]), ElementsAre("x", "y", "(none)"));
  EXPECT_THAT(table.columns[2].numbers, ElementsAre(1, 0, IsNan()));
  EXPECT_EQ(table.columns[3].numbers[0], 60);
}

TEST(RawTable, ReadsQuotesNewlinesAndAByteOrderMark) {
  const TestFolder folder;
  const RawRows table =
      read(files({folder.write("a.csv", "\xEF\xBB\xBFname,n\n\"a, \"\"b\"\"\nc\",1\n\nd,2\r\n")}));
  EXPECT_THAT(names(table), ElementsAre("name", "n"));
  EXPECT_THAT(texts(table.columns[0]), ElementsAre("a, \"b\"\nc", "d"));
  EXPECT_THAT(table.columns[1].numbers, ElementsAre(1, 2));
  EXPECT_THAT(place(table, 1), HasSubstr("a.csv, line 5,"));
}

TEST(RawTable, FindsTheSeparatorAndTakesDecimalCommas) {
  const TestFolder folder;
  spec::TableSource source = files({folder.write("a.csv", "a;b\n1,5;2\n-3,25;4\n")});
  source.format.decimal = ',';
  EXPECT_THAT(read(source).columns[0].numbers, ElementsAre(1.5, -3.25));
  const RawRows tabs = read(files({folder.write("a.tsv", "a\tb\n1\t2\n")}));
  EXPECT_THAT(names(tabs), ElementsAre("a", "b"));
}

TEST(RawTable, NamesColumnsWithoutAHeader) {
  const TestFolder folder;
  spec::TableSource source = files({folder.write("a.csv", "007,2\n008,4\n")});
  source.format.header = false;
  const RawRows table =
      read(source, {{"column2", std::nullopt}, {"column1", FeatureKind::category}});
  EXPECT_THAT(table.columns[0].numbers, ElementsAre(2, 4));
  EXPECT_THAT(texts(table.columns[1]), ElementsAre("007", "008"));
  EXPECT_THAT(place(table, 1), HasSubstr("line 2,"));
}

TEST(RawTable, UnpacksGzip) {
  const TestFolder folder;
  const RawRows table = read(files({folder.write("a.csv.gz", gzip("a\n1\n2\n"))}));
  EXPECT_THAT(table.columns[0].numbers, ElementsAre(1, 2));
}

TEST(RawTable, TakesColumnsOfFilesInAnyOrder) {
  const TestFolder folder;
  folder.write("1.csv", "a,b\n1,x\n");
  folder.write("2.csv", "b,more,a\n5,,2.5\nx,,3\n");
  const RawRows table = read(files({folder.path() / "*.csv"}));
  EXPECT_THAT(table.columns[0].numbers, ElementsAre(1, 2.5, 3));
  EXPECT_THAT(texts(table.columns[1]), ElementsAre("x", "5", "x"));
  RawReader reader(files({folder.path() / "*.csv"}), {.all = true, .columns = {}});
  EXPECT_THAT(reader.rows_of_files(), ElementsAre(1, 2));
  std::vector<std::string> last;
  reader.read([&](const RawRows& rows) {
    EXPECT_EQ(rows.first, last.size());
    last.push_back(place(rows, rows.count - 1));
  });
  EXPECT_THAT(last, ElementsAre(HasSubstr("1.csv, line 2,"), HasSubstr("2.csv, line 3,")));
}

TEST(RawTable, NamesAColumnThatIsMissingInOneFile) {
  const TestFolder folder;
  folder.write("1.csv", "age,b\n1,x\n");
  folder.write("2.csv", "Age,b\n1,x\n");
  EXPECT_THAT(refusal(files({folder.path() / "*.csv"})),
              HasSubstr("2.csv: expected a column named \"age\", found the columns Age, b; did you "
                        "mean Age?"));
}

TEST(RawTable, RefusesAColumnThatIsThereTwice) {
  const TestFolder folder;
  EXPECT_THAT(refusal(files({folder.write("a.csv", "a,a\n1,2\n")})),
              EndsWith("a.csv: expected one column named \"a\", found 2"));
}

TEST(RawTable, NamesFileLineAndColumnOfATextAmongNumbers) {
  const TestFolder folder;
  folder.write("1.csv", "age\n1\n2\n");
  folder.write("2.csv", "age\n1\n\n\nabout 30\n");
  EXPECT_THAT(refusal(files({folder.path() / "*.csv"})),
              EndsWith("2.csv, line 5, column age: expected a number, found \"about 30\""));
  const std::string one = refusal(files({folder.write("3.csv", "age\n1\n2\n?\n3\n")}));
  EXPECT_THAT(one, HasSubstr("3.csv, line 4, column age: expected a number, as 3 of the 4 cells "
                             "have, found \"?\"; if the column has categories, "));
  EXPECT_THAT(refusal(files({folder.path() / "3.csv"}),
                      std::vector<WantedColumn>{{"age", FeatureKind::number}}),
              EndsWith("3.csv, line 4, column age: expected a number, found \"?\""));
  EXPECT_EQ(refusal(files({folder.path() / "3.csv"}),
                    std::vector<WantedColumn>{{"age", FeatureKind::category}}),
            "no error");
}

TEST(RawTable, RefusesARowOfOtherLength) {
  const TestFolder folder;
  EXPECT_THAT(refusal(files({folder.write("a.csv", "a,b\n1,2\n\n3\n")})),
              EndsWith("a.csv, line 4: expected 2 columns, found 1"));
}

TEST(RawTable, RefusesWhatIsNoTable) {
  const TestFolder folder;
  EXPECT_THAT(refusal(files({folder.write("a.csv", "")})),
              EndsWith("a.csv: expected a table, found an empty file"));
  EXPECT_THAT(refusal(files({folder.path() / "none.csv"})), HasSubstr("none.csv"));
  EXPECT_THAT(refusal(files({folder.write("a.xlsx", "PK")})),
              AllOf(HasSubstr("a.xlsx: expected the ending .csv, .tsv"), EndsWith("\".xlsx\"")));
  EXPECT_THAT(refusal(files({folder.write("b.csv", "a\n\xff\xfe\n")})),
              HasSubstr("column a: expected numbers or texts in UTF-8, found the type binary"));
}

TEST(RawTable, ReadsTenThousandColumns) {
  const TestFolder folder;
  std::string names = "c0", cells = "0";
  for (int i = 1; i < 10'000; ++i) {
    names += ",c" + std::to_string(i);
    cells += "," + std::to_string(i);
  }
  const RawRows table = read(files({folder.write("a.csv", names + "\n" + cells + "\n")}));
  ASSERT_EQ(table.columns.size(), 10'000u);
  EXPECT_THAT(table.columns[9'999].numbers, ElementsAre(9'999));
}

class TypedFiles : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, TypedFiles, testing::Values("types.parquet", "types.feather"));

TEST_P(TypedFiles, AreReadByTheirTypes) {
  const spec::TableSource source = files({kFixtures + GetParam()});
  const RawRows table = read(source, {{"integer", {}},
                                      {"half", {}},
                                      {"double", {}},
                                      {"boolean", {}},
                                      {"decimal", {}},
                                      {"date", {}},
                                      {"time", {}},
                                      {"text", {}},
                                      {"category", {}}});
  EXPECT_THAT(table.columns[0].numbers, ElementsAre(1, IsNan(), 3));
  EXPECT_THAT(table.columns[1].numbers, ElementsAre(0.5, 1.5, IsNan()));
  EXPECT_THAT(table.columns[2].numbers, ElementsAre(0.25, IsNan(), -1));
  EXPECT_THAT(table.columns[3].numbers, ElementsAre(1, IsNan(), 0));
  EXPECT_THAT(table.columns[4].numbers, ElementsAre(1.25, IsNan(), -3.5));
  EXPECT_THAT(table.columns[5].numbers, ElementsAre(86400, IsNan(), 0));
  EXPECT_THAT(table.columns[6].numbers, ElementsAre(60, IsNan(), 0));
  EXPECT_THAT(texts(table.columns[7]), ElementsAre("b", "a", "(none)"));
  EXPECT_THAT(texts(table.columns[8]), ElementsAre("low", "high", "low"));
  const RawRows as_texts = read(source, {{"integer", FeatureKind::category},
                                         {"boolean", FeatureKind::category},
                                         {"large", FeatureKind::category}});
  EXPECT_THAT(texts(as_texts.columns[0]), ElementsAre("1", "(none)", "3"));
  EXPECT_THAT(texts(as_texts.columns[1]), ElementsAre("true", "(none)", "false"));
  EXPECT_THAT(texts(as_texts.columns[2]), ElementsAre("1", "9007199254740993", "3"));
}

TEST_P(TypedFiles, HaveLists) {
  const RawRows table =
      read(files({kFixtures + GetParam()}),
           {{"list", {}}, {"texts", {}}, {"pair", {}}, {"list", FeatureKind::categories}});
  EXPECT_THAT(table.columns[0].numbers, ElementsAre(1, 2));
  EXPECT_THAT(table.columns[0].ends, ElementsAre(2, 2, 2));
  EXPECT_THAT(texts(table.columns[1]), ElementsAre("b", "a", "b"));
  EXPECT_THAT(table.columns[1].ends, ElementsAre(2, 2, 3));
  EXPECT_THAT(table.columns[2].numbers, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(table.columns[2].ends, ElementsAre(2, 4, 6));
  EXPECT_THAT(texts(table.columns[3]), ElementsAre("1", "2"));
}

class SeveralBlocks : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, SeveralBlocks, testing::Values("several.parquet", "several.feather"));

TEST_P(SeveralBlocks, AreReadOneByOne) {
  const spec::TableSource source = files({kFixtures + GetParam()});
  const std::vector<WantedColumn> wanted{{"number", {}}, {"text", {}}, {"list", {}}};
  std::vector<uint64_t> counts, firsts;
  RawReader(source, {.all = false, .columns = wanted}).read([&](const RawRows& rows) {
    counts.push_back(rows.count);
    firsts.push_back(rows.first);
  });
  EXPECT_THAT(counts, ElementsAre(2, 2, 1));
  EXPECT_THAT(firsts, ElementsAre(0, 2, 4));
  const RawRows all = read(source, wanted);
  EXPECT_THAT(all.columns[0].numbers, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(texts(all.columns[1]), ElementsAre("a", "b", "c", "a", "d"));
  EXPECT_THAT(all.columns[2].ends, ElementsAre(1, 1, 3, 4, 4));
  EXPECT_THAT(refusal(source, std::vector<WantedColumn>{{"bad", {}}}),
              HasSubstr(", row 4, column bad: expected a finite number"));
}

TEST_P(TypedFiles, HaveWhatIsRefusedByRowAndColumn) {
  const spec::TableSource source = files({kFixtures + GetParam()});
  EXPECT_THAT(refusal(source, std::vector<WantedColumn>{{"large", {}}}),
              HasSubstr(", row 2, column large: expected an integer of at most 2^53, up to which "
                        "numbers are exact, found \"9007199254740993\""));
  EXPECT_THAT(refusal(source, std::vector<WantedColumn>{{"infinite", {}}}),
              HasSubstr(", row 2, column infinite: expected a finite number, found \"inf\""));
  EXPECT_THAT(refusal(source, std::vector<WantedColumn>{{"digits", FeatureKind::number}}),
              HasSubstr(", row 3, column digits: expected a number, found \"x\""));
  EXPECT_THAT(
      refusal(source, std::vector<WantedColumn>{{"structure", {}}}),
      AllOf(HasSubstr("column structure: expected numbers or texts"), HasSubstr("struct<")));
  EXPECT_THAT(refusal(source, std::vector<WantedColumn>{{"texts", FeatureKind::vector}}),
              HasSubstr("column texts: expected lists of numbers, found lists of texts"));
  EXPECT_THAT(refusal(source, std::vector<WantedColumn>{{"list", FeatureKind::number}}),
              HasSubstr("column list: expected numbers or texts in UTF-8, found the type list<"));
}

TEST_P(TypedFiles, AreRefusedIfTheyAreCutOff) {
  const TestFolder folder;
  std::ifstream file(kFixtures + GetParam(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  for (const size_t size : {size_t{1}, size_t{100}, whole.size() / 2, whole.size() - 1})
    EXPECT_THAT(
        refusal(files({folder.write(GetParam(), whole.substr(0, size))})),
        HasSubstr(std::string(GetParam()) + ": expected a whole file of this format, found"))
        << size;
}

TEST(RawTable, FollowsDictionariesThatChange) {
  const RawRows table = read(files({kFixtures + "dictionaries.arrow"}));
  EXPECT_THAT(texts(table.columns[0]), ElementsAre("a", "b", "b", "c"));
}

}  // namespace
}  // namespace muster::data
