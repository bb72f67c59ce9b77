#include "trainer/data/tables/summary.h"

#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"

namespace muster::data {
namespace {

using testing::HasSubstr;

TEST(Summary, SaysWhatIsInEachColumn) {
  const TestFolder folder;
  const TableSummary summary = summarize(
      folder.write("t.csv", "n,t,is,none\n1,b,true,\n2.5,a,false,\n,b,,\n4,c\x1b[31m,,\n"), {});
  EXPECT_EQ(summary.rows, 4u);
  const Json json = to_json(summary)["columns"];
  EXPECT_EQ(json[0]["missing"], 1);
  EXPECT_EQ(json[0]["distinct"], 3);
  EXPECT_EQ(json[0]["least"], 1);
  EXPECT_EQ(json[0]["most"], 4);
  EXPECT_EQ(json[0]["mean"], 2.5);
  EXPECT_EQ(json[1]["frequent"][0], (Json{{"value", "b"}, {"cells", 2}}));
  EXPECT_EQ(json[2]["type"], "bool");
  EXPECT_EQ(json[3]["missing"], 4);
  EXPECT_EQ(json[0]["bins"], Json({1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}));
  EXPECT_FALSE(summary.columns[0].is_whole);
  EXPECT_THAT(summary_text(summary), HasSubstr("t.csv: 4 rows, 4 columns\ncolumn  type"));
  EXPECT_THAT(summary_text(summary), HasSubstr("1 to 4, mean 2.5  █     █    █\n"));
  EXPECT_THAT(summary_text(summary), HasSubstr("b (2), a (1), c?[31m (1)\n"));
}

TEST(Summary, ReadsWhatCannotBeUsedToo) {
  const TableSummary summary =
      summarize(MUSTER_SOURCE_DIR "/tests/fixtures/tables/types.parquet", {});
  EXPECT_EQ(summary.rows, 3u);
  EXPECT_THAT(summary_text(summary), HasSubstr("list<"));
}

}  // namespace
}  // namespace muster::data
