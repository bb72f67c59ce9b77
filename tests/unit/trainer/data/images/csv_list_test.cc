#include "trainer/data/images/csv_list.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::ElementsAre;

spec::ImageCsvSource source(std::vector<std::string> classes = {}) {
  spec::ImageCsvSource source;
  source.file = "lists/train.csv";
  source.classes = std::move(classes);
  return source;
}

ImageList parse(const std::string& text, const spec::ImageCsvSource& csv = source()) {
  return parse_csv_list(text, csv, "list");
}

TEST(CsvList, HasPathsAndNumbers) {
  const ImageList list = parse("a.jpg,0\nfolder/b.png,2\n/c.jpeg,1\n");
  EXPECT_THAT(list.files, ElementsAre(ImageFile{"lists/a.jpg", 0},
                                      ImageFile{"lists/folder/b.png", 2}, ImageFile{"/c.jpeg", 1}));
  EXPECT_EQ(list.label_count, 3);
  EXPECT_TRUE(list.classes.empty());
}

TEST(CsvList, HasNamesOfClassesOrNumbers) {
  const ImageList list = parse("a.jpg,dog\nb.jpg,0\nc.jpg,cat\n", source({"cat", "dog", "cow"}));
  EXPECT_THAT(list.files, ElementsAre(ImageFile{"lists/a.jpg", 1}, ImageFile{"lists/b.jpg", 0},
                                      ImageFile{"lists/c.jpg", 0}));
  EXPECT_EQ(list.label_count, 3);
  EXPECT_THAT(list.classes, ElementsAre("cat", "dog", "cow"));
}

TEST(CsvList, TakesPathsFromAFolderOfTheirOwn) {
  spec::ImageCsvSource csv = source();
  csv.folder = "images";
  EXPECT_THAT(parse("a.jpg,0", csv).files, ElementsAre(ImageFile{"images/a.jpg", 0}));
}

TEST(CsvList, MayHaveAHeaderBlankLinesSpacesAndQuotationMarks) {
  const std::vector<ImageFile> wanted = {{"lists/a,b.jpg", 1}, {"lists/c\"d.jpg", 2}};
  for (const char* text : {"path,label\n\"a,b.jpg\",1\n\"c\"\"d.jpg\",2\n", "a,b.jpg,1\nc\"d.jpg,2",
                           "\xef\xbb\xbfpath,label\r\n\r\na,b.jpg, 1 \r\n \"c\"\"d.jpg\",2\r\n"}) {
    EXPECT_EQ(parse(text).files, wanted) << text;
  }
}

TEST(CsvList, HasQuotationMarksAndSeparatorsAsOthersWriteThem) {
  const std::vector<ImageFile> wanted = {{"lists/a.jpg", 1}, {"lists/b,c.jpg", 0}};
  for (const char* text :
       {"\"a.jpg\",\"dog\"\n\"b,c.jpg\",\"cat\"\n", "a.jpg;dog\nb,c.jpg;cat\n",
        "a.jpg\tdog\r\nb,c.jpg\tcat", "\"file\";\"class\"\n\"a.jpg\";\"dog\"\n\"b,c.jpg\";0",
        "\xef\xbb\xbf\"a.jpg\",\"1\"\n\"b,c.jpg\", \"cat\" "})
    EXPECT_EQ(parse(text, source({"cat", "dog"})).files, wanted) << text;
}

// A first line is no header because its picture is of a kind that cannot be read.
TEST(CsvList, HasNoHeaderThatNamesAFile) {
  EXPECT_THAT(parse("a.webp,0\nb.jpg,1").files,
              ElementsAre(ImageFile{"lists/a.webp", 0}, ImageFile{"lists/b.jpg", 1}));
}

struct Refused {
  const char* text;
  const char* error;
};

class RefusedCsvList : public testing::TestWithParam<Refused> {};

TEST_P(RefusedCsvList, NamesTheLine) {
  try {
    parse(GetParam().text, source({"cat", "dog"}));
    FAIL() << "no error";
  } catch (const Invalid& error) {
    EXPECT_STREQ(error.what(), GetParam().error);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedCsvList,
    testing::Values(
        Refused{"", "list: expected lines path,label, found none"},
        Refused{"path,label\n", "list: expected lines path,label, found none"},
        Refused{"a.jpg,1\nb.jpg\n", "list: line 2, column 1: expected path,label, found \"b.jpg\""},
        Refused{"a.jpg,1\n,1\n", "list: line 2, column 1: expected path,label, found \",1\""},
        Refused{"a.jpg,1\n\"b.jpg,1\n",
                "list: line 2, column 1: expected a second quotation mark at the end of the field, "
                "found none"},
        Refused{"a.jpg,1\n\"b.jpg\",\"x\",1\n",
                "list: line 2, column 1: expected path,label, found \"b.jpg,x,1\""},
        Refused{"C:\\cats\\a.jpg,1\n",
                "list: line 1, column 1: expected a path on this system, and no drive of Windows, "
                "found \"C:\\cats\\a.jpg\""},
        Refused{"a.jpg,cow\n",
                "list: line 1, column 7: expected one of the classes, or a number from 0 to 1 "
                "as label, found \"cow\""},
        Refused{"\na.jpg,2\n",
                "list: line 2, column 7: expected one of the classes, or a number from 0 to 1 "
                "as label, found \"2\""},
        Refused{"a.jpg,-1\n",
                "list: line 1, column 7: expected one of the classes, or a number from 0 to 1 "
                "as label, found \"-1\""}));

TEST(CsvList, RefusesNamesWhereThereAreNoClasses) {
  try {
    parse("a.jpg,cat\n");
    FAIL() << "no error";
  } catch (const Invalid& error) {
    EXPECT_STREQ(
        error.what(),
        "list: line 1, column 7: expected a number from 0 to 65535 as label, found \"cat\"");
  }
}

}  // namespace
}  // namespace muster::data
