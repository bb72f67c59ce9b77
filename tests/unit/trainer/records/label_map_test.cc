#include "trainer/records/label_map.h"

#include "gmock/gmock.h"
#include "tests/unit/trainer/records/fixture.h"

namespace muster::records {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LabelMap parse_map(const std::string& text) {
  return LabelMap::parse(text, "FILE");
}

TEST(LabelMap, ReadsTheTextOfTheDetectionApi) {
  const LabelMap map = parse_map(R"(
    # COCO's ids have gaps
    item {
      name: "/m/0k4j"
      id: 3
      display_name: "car"
    }
    item { id: 1 name: '/m/01g317' display_name: "person" }
    item: < name: "caf\xc3\xa9" id: 90; >
    item { id: 0 name: "background" }
  )");
  EXPECT_THAT(map.entries(), ElementsAre(LabelMap::Entry{1, "/m/01g317", "person"},
                                         LabelMap::Entry{3, "/m/0k4j", "car"},
                                         LabelMap::Entry{90, "caf\xc3\xa9", "caf\xc3\xa9"}));
  EXPECT_EQ(map.id_of("/m/0k4j"), 3);
  EXPECT_EQ(map.id_of("car"), 3);
  EXPECT_EQ(map.id_of("dog"), std::nullopt);
  EXPECT_EQ(map.index_of(90), 2u);
  EXPECT_EQ(map.index_of(2), std::nullopt);
}

TEST(LabelMap, MayHaveTheOtherFieldsOfItsFormat) {
  const LabelMap map = parse_map(R"(item { id: 1 name: "a" ancestor_ids: [2, 3] frequency: FREQUENT
    keypoints { id: 7 label: "nose" } instance_count: 12 })");
  EXPECT_EQ(map.entries().size(), 1u);
}

TEST(LabelMap, MayBeginWithAByteOrderMark) {
  EXPECT_EQ(parse_map("\xef\xbb\xbfitem { id: 1 name: 'a' }").id_of("a"), 1);
  EXPECT_THAT(error_of([] { parse_map("\xef\xbb\xbfitem { id: 'x' name: 'a' }"); }),
              HasSubstr("line 1, column 12"));
}

TEST(LabelMap, PrefersANameToADisplayName) {
  const LabelMap map =
      parse_map("item { id: 1 name: 'a' display_name: 'b' } item { id: 2 name: 'b' }");
  EXPECT_EQ(map.id_of("a"), 1);
  EXPECT_EQ(map.id_of("b"), 2);
}

TEST(LabelMap, SaysWhatIsWrong) {
  struct Row {
    std::string text;
    const char* message;
  };
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "x{";
  for (const Row& row : std::initializer_list<Row>{
           {"", "FILE: expected a label map with at least one item"},
           {"item { id: 0 name: 'background' }", "at least one item of id 1"},
           {"item {\n id: 1 name: }", "FILE: expected a label map, found an error in line 2"},
           {"item { id: 'x' name: 'a' }", "line 1, column 12"},
           {"item { id: 99999999999 name: 'a' }", "line 1"},
           {"\nitem { id: 1 }",
            "a name and an id in each item, found no name in item 1, which begins in line 2"},
           {"item { id: 1 name: 'a' }\nitem {\n  id: 0 name: 'cat' }",
            "FILE: line 3, column 3: expected an id of at least 1 for \"cat\", found 0, which "
            "stands for the background"},
           {"item {\n id: 1 name: 'a'\n colour: 'red' }", "an error in line 3, column 8"},
           {"item {\n id: 1 name: 'a'\n item { id: 2 name: 'b' } }", "an error in line 3"},
           {"classes: 2\nitem { id: 1 name: 'a' }", "an error in line 1"},
           {"item { id: 1 name: 'a' } item { name: 'b' }", "found no id in item 2"},
           {"item { id: -1 name: 'a' }", "expected the id of \"a\" to be at least 0, found -1"},
           {"item { id: 1 name: 'a' } item { id: 1 name: 'b' }",
            "each id once, found 1 for \"a\" and \"b\""},
           {"item { id: 1 name: 'a' } item { id: 2 name: 'a' }",
            "each name once, found \"a\" for ids 1 and 2"},
           {"item { " + deep, "FILE: expected a label map"},
           {std::string(100, '\0'), "FILE: expected a label map"},
           {"item {\n id: 1 name: 'caf\xe9' }",
            "FILE: line 2: expected text in UTF-8, found the byte"},
           {"\xfe\xff" + std::string("\0i\0t", 4),
            "FILE: line 1: expected text in UTF-8, found UTF-16"},
       }) {
    EXPECT_THAT(error_of([&] { parse_map(row.text); }), HasSubstr(row.message)) << row.message;
  }
}

// COCO has 80 ids up to 90, and the Object Detection API trains them as 90 classes.
TEST(LabelMap, CountsClassesByIdsWhereThereIsRoom) {
  const LabelMap map =
      parse_map("item { id: 1 name: 'a' } item { id: 4 name: 'b' display_name: 'B' }");
  for (const int64_t classes : {4, 90}) {
    EXPECT_EQ(map.class_of(1, classes), 0);
    EXPECT_EQ(map.class_of(4, classes), 3);
    EXPECT_THAT(map.names_by_class(classes), ElementsAre("a", "2", "3", "B"));
  }
  for (const int64_t classes : {0, 2, 3}) {
    EXPECT_EQ(map.class_of(1, classes), 0);
    EXPECT_EQ(map.class_of(4, classes), 1);
    EXPECT_THAT(map.names_by_class(classes), ElementsAre("a", "B"));
  }
}

TEST(LabelMap, IsReadFromAFile) {
  const TestFolder folder;
  EXPECT_EQ(LabelMap::read(folder.write("map", "item { id: 1 name: 'a' }")).id_of("a"), 1);
  EXPECT_THAT(error_of([&] { LabelMap::read(folder.write("bad.pbtxt", "item { id: 1 }")); }),
              HasSubstr("bad.pbtxt: expected a name"));
}

}  // namespace
}  // namespace muster::records
