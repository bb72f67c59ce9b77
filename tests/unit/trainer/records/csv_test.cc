#include "trainer/records/csv.h"

#include "gmock/gmock.h"
#include "tests/unit/trainer/records/fixture.h"

namespace muster::records {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  CsvReader reader(text, "FILE");
  for (std::vector<CsvField> row; reader.next(row);) {
    rows.emplace_back();
    for (const CsvField& field : row) rows.back().push_back(field.text);
  }
  return rows;
}

TEST(Csv, HasRowsOfFields) {
  for (const char* text :
       {"a,b\nc,d\n", "a,b\nc,d", "a,b\r\nc,d\r\n", "\xef\xbb\xbf\"a\",\"b\"\nc,\"d\"", "a;b\nc;d",
        "a\tb\nc\td", "\n\r\n  \na,b\n\n \"c\" ,d\n", "\"a\"\t\"b\"\n\"c\"\td"})
    EXPECT_THAT(rows_of(text), ElementsAre(ElementsAre("a", "b"), ElementsAre("c", "d"))) << text;
}

TEST(Csv, HasAnythingInQuotationMarks) {
  EXPECT_THAT(rows_of("\"a,\"\"b\"\"\",\"c\nd\"\n\"\",e"),
              ElementsAre(ElementsAre("a,\"b\"", "c\nd"), ElementsAre("", "e")));
  EXPECT_THAT(rows_of("a\"b,c"), ElementsAre(ElementsAre("a\"b", "c")));
}

TEST(Csv, TakesTheLastSeparatorOfTheFirstRow) {
  EXPECT_THAT(rows_of("a,b;c\n1;2"), ElementsAre(ElementsAre("a,b", "c"), ElementsAre("1", "2")));
  EXPECT_THAT(rows_of("\"x;y\",1"), ElementsAre(ElementsAre("x;y", "1")));
  EXPECT_THAT(rows_of("\"x\"\";y\",1"), ElementsAre(ElementsAre("x\";y", "1")));
  EXPECT_THAT(rows_of("a;b,1\n\"c;d\",2"),
              ElementsAre(ElementsAre("a;b", "1"), ElementsAre("c;d", "2")));
}

TEST(Csv, SaysWhereAFieldBegins) {
  const std::string text = "a,\"b\nc\",d\n\n e,f";
  CsvReader reader(text, "FILE");
  std::vector<CsvField> row;
  ASSERT_TRUE(reader.next(row));
  EXPECT_EQ(row[1].line, 1u);
  EXPECT_EQ(row[1].column, 3u);
  EXPECT_EQ(row[2].line, 2u);
  EXPECT_EQ(row[2].column, 4u);
  ASSERT_TRUE(reader.next(row));
  EXPECT_EQ(row[0].line, 4u);
  EXPECT_EQ(row[0].column, 2u);
  EXPECT_FALSE(reader.next(row));
}

TEST(Csv, IsReadOnlyInUtf8) {
  EXPECT_THAT(error_of([] { rows_of("a,1\ncaf\xe9,2\n"); }),
              HasSubstr("FILE: line 2: expected text in UTF-8, found the byte 233 at offset 7"));
  EXPECT_THAT(error_of([] { rows_of("\xff\xfe" + std::string("a\0,\0", 4)); }),
              HasSubstr("FILE: line 1: expected text in UTF-8, found UTF-16"));
}

TEST(Csv, SaysWhatIsWrongWithQuotationMarks) {
  EXPECT_THAT(error_of([] { rows_of("a,b\nc,\"d\n\n"); }),
              HasSubstr("FILE: line 2, column 3: expected a second quotation mark"));
  EXPECT_THAT(error_of([] { rows_of("a,\"b\" c\n"); }),
              HasSubstr("FILE: line 1, column 7: expected the end of a field after its quotation "
                        "mark, found 'c'"));
}

}  // namespace
}  // namespace muster::records
