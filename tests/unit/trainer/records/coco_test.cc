#include "trainer/records/coco.h"

#include <fmt/format.h>

#include "gmock/gmock.h"
#include "tests/unit/trainer/records/fixture.h"

namespace muster::records {
namespace {

using images::Box;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Like COCO's own: fields in any order, annotations before the images, ids with gaps.
const std::string kSmall = R"({
  "info": {"year": 2017, "contributor": "na\u00efve"},
  "annotations": [
    {"segmentation": [[1.5, 2, 3]], "area": 702.1, "iscrowd": 0, "image_id": 9, "bbox": [10, 20.5, 30, 40],
     "category_id": 90, "id": 1},
    {"segmentation": {"counts": [1, 2], "size": [50, 100]}, "iscrowd": 1, "image_id": 9,
     "bbox": [-5, 0, 10, 100], "category_id": 1, "id": 2},
    {"image_id": 12345, "bbox": [0, 0, 1, 1], "category_id": 1},
    {"image_id": 4, "bbox": [3, 3, 0, 5], "category_id": 1}
  ],
  "images": [
    {"id": 9, "file_name": "a\/b.jpg", "height": 100, "width": 200, "license": null},
    {"id": 4, "file_name": "c.jpg", "height": 10, "width": 10}
  ],
  "categories": [{"supercategory": "indoor", "id": 90, "name": "toothbrush"}, {"id": 1, "name": "person"}]
})";

CocoAnnotations parse(const std::string& json) {
  return CocoAnnotations::parse(json, "FILE");
}

TEST(Coco, ReadsImagesWithTheirBoxes) {
  const CocoAnnotations coco = parse(kSmall);
  ASSERT_EQ(coco.images.size(), 2u);
  EXPECT_EQ(coco.images[0].file_name, "a/b.jpg");
  EXPECT_EQ(coco.images[0].height, 100);
  EXPECT_EQ(coco.images[0].width, 200);
  EXPECT_THAT(
      coco.images[0].boxes,
      ElementsAre(Box{.ymin = 0.205f,
                      .xmin = 0.05f,
                      .ymax = 0.605f,
                      .xmax = 0.2f,
                      .label = 90,
                      .area = 702.1f},
                  Box{.ymin = 0, .xmin = 0, .ymax = 1, .xmax = 0.025f, .label = 1, .crowd = true}));
  EXPECT_THAT(coco.images[1].boxes, IsEmpty());
  EXPECT_EQ(coco.problems, (images::BoxProblems{.no_area = 1, .outside = 1}));
  EXPECT_EQ(coco.without_image, 1u);
  EXPECT_EQ(coco.first_without_image, "annotations[2] (line 8, column 5)");
  EXPECT_EQ(coco.by_corners, 0u);
  EXPECT_THAT(coco.categories.entries(),
              ElementsAre(LabelMap::Entry{1, "person", "person"},
                          LabelMap::Entry{90, "toothbrush", "toothbrush"}));
  EXPECT_EQ(coco.categories.index_of(90), 1u);
}

TEST(Coco, IsReadFromAFile) {
  const TestFolder folder;
  EXPECT_EQ(CocoAnnotations::read(folder.write("coco.json", kSmall)).images.size(), 2u);
  EXPECT_THAT(error_of([&] { CocoAnnotations::read(folder.write("bad.json", "{}")); }),
              HasSubstr("bad.json: expected COCO annotations: expected a list \"images\""));
}

std::string replaced(const std::string& what, const std::string& with) {
  std::string text = kSmall;
  return text.replace(text.find(what), what.size(), with);
}

TEST(Coco, SaysWhatIsWrongAndWhere) {
  struct Row {
    std::string json;
    const char* message;
  };
  const std::string deep(100000, '[');
  for (const Row& row : std::initializer_list<Row>{
           {"", "FILE: expected COCO annotations: expected an object, found an empty text"},
           {"{\"images\": " + deep + std::string(100000, ']') + "}",
            "FILE: images[0]: expected COCO annotations: "},
           {"{\"x\": " + deep, "FILE: expected COCO annotations: "},
           {R"({"images": [], "annotations": []})", "expected a list \"categories\", found none"},
           {R"({"images": {}, "annotations": [], "categories": []})",
            "FILE: images: expected COCO annotations: expected a list, found {"},
           {R"({"images": [7], "annotations": [], "categories": []})",
            "FILE: images[0]: expected COCO annotations: expected an object, found 7"},
           {kSmall + "{}", "FILE: expected COCO annotations: "},
           {replaced("\"bbox\": [10, 20.5, 30, 40],", ""),
            "FILE: annotations[0]: expected COCO annotations: expected \"bbox\", found none"},
           {replaced("[10, 20.5, 30, 40]", "[10, 20.5, 30]"),
            "annotations[0].bbox: expected COCO annotations: expected 4 numbers (x, y, width, "
            "height), found 3"},
           {replaced("[10, 20.5, 30, 40]", "[10, 20.5, 30, NaN]"),
            "FILE: annotations[0].bbox: expected COCO annotations: expected a number, found NaN "
            "(line 4, column "},
           {replaced("[10, 20.5, 30, 40]", "\"10\""),
            "FILE: annotations[0].bbox: expected COCO annotations: expected a list, found \"10\""},
           {replaced("[10, 20.5, 30, 40]", "[10, null, 30, 40]"), "expected a number, found null"},
           {replaced("\"category_id\": 90", "\"category_id\": 2"),
            "annotations[0].category_id: expected COCO annotations: expected the id of a "
            "category, found 2"},
           {replaced("\"category_id\": 90", "\"category_id\": 4294967297"),
            "expected the id of a category, found 4294967297"},
           {replaced("\"id\": 4", "\"id\": 9"),
            "images[1]: expected COCO annotations: expected each id once, found the one of c.jpg "
            "again"},
           {replaced("\"id\": 4", "\"id\": []"), "expected a number or a text, found ["},
           {replaced("\"category_id\": 90", "\"category_id\": 4.5"),
            "annotations[0].category_id: expected COCO annotations: expected a whole number, found "
            "4.5 (line 5, column 21)"},
           {replaced("\"category_id\": 90", "\"category_id\": \"nine\""),
            "expected a whole number, found \"nine\" (line 5, column 21)"},
           {replaced("\"area\": 702.1", "\"area\": \"7,5\""), "expected a number, found \"7,5\""},
           {replaced("\"category_id\": 90", "\"category_id\": null"),
            "annotations[0]: expected COCO annotations: expected \"category_id\", found none (line "
            "4, column 5)"},
           {replaced("a\\/b.jpg", "C:\\\\b.jpg"),
            "images[0].file_name: expected COCO annotations: expected a path on this system, found "
            "C:\\b.jpg, a path on Windows (line 12, column 28)"},
           {replaced("\"person\"", "7"),
            "categories[1].name: expected COCO annotations: expected a text, found 7 (line 15, "
            "column 97)"},
           {"{\"images\": [],\n \"annotations\" 7}", "(line 2, column "},
           {replaced("\"height\": 100", "\"height\": 0"),
            "images[0].height: expected COCO annotations: expected at least 1, found 0"},
           {replaced("\"id\": 90", "\"id\": 1"), "FILE: categories: expected each id once"},
           {replaced("\"id\": 90", "\"id\": -1"), "categories[0].id: "},
           {replaced("\"toothbrush\"", "\"person\""), "FILE: categories: expected each name once"},
       }) {
    EXPECT_THAT(error_of([&] { parse(row.json); }), HasSubstr(row.message)) << row.message;
  }
}

TEST(Coco, SaysWhereATextIsNoJsonOfThisKind) {
  struct Row {
    std::string json;
    const char* message;
  };
  const std::string deep(100000, '[');
  for (const Row& row : std::initializer_list<Row>{
           {"[]",
            "FILE: expected COCO annotations: expected an object with images, annotations and "
            "categories, found a list (line 1, column 1)"},
           {"[{\"image_id\": 1}]", "categories, found a list (line 1, column 1)"},
           {"7", "categories, found 7 (line 1, column 1)"},
           {"NaN", "FILE: expected COCO annotations: expected JSON, found NaN ("},
           {"{\"images\": " + deep,
            "FILE: expected COCO annotations: expected a closing bracket, found the end of the "
            "text, which may be cut off (line 1, column 100012)"},
           {kSmall.substr(0, kSmall.find("\"id\": 4")),
            "FILE: expected COCO annotations: expected a closing bracket, found the end of the "
            "text, which may be cut off (line 13, column 6)"},
           {kSmall.substr(0, kSmall.find(",\n    {\"id\": 4")),
            "FILE: expected COCO annotations: expected a closing bracket, found the end of the "
            "text, which may be cut off (line 12, column "},
           {kSmall.substr(0, kSmall.find(".jpg\", \"height\": 10, ")),
            "FILE: expected COCO annotations: expected a closing quotation mark, found the end of "
            "the text, which may be cut off (line 13, column "},
           {replaced("\"area\": 702.1", "\"area\": NaN"),
            "annotations[0].area: expected COCO annotations: expected a number, found NaN (line 4, "
            "column "},
           {replaced("toothbrush", "caf\xe9"),
            "FILE: line 15: expected text in UTF-8, found the byte"},
           {"\xff\xfe" + std::string("{\0}\0", 4),
            "FILE: line 1: expected text in UTF-8, found UTF-16"},
           {"<!DOCTYPE html>", "expected JSON, found <!DOCTYPE html> ("},
       }) {
    EXPECT_THAT(error_of([&] { parse(row.json); }), HasSubstr(row.message)) << row.message;
  }
}

// Each writes what kSmall says.
TEST(Coco, TakesWhatHasAPlainMeaning) {
  const CocoAnnotations plain = parse(kSmall);
  std::string texts = kSmall;
  const auto replace_all = [&](const std::string& what, const std::string& with) {
    for (size_t at = 0; (at = texts.find(what, at)) != std::string::npos; at += with.size())
      texts.replace(at, what.size(), with);
  };
  replace_all("\"image_id\": 9", "\"image_id\": \"photo-9\"");
  replace_all("{\"id\": 9,", "{\"id\": \"photo-9\",");
  replace_all("\"id\": 90", "\"id\": \"90\"");
  for (const std::string& text : {
           "\xef\xbb\xbf" + kSmall,
           texts,
           replaced("[10, 20.5, 30, 40]", "[\"10.000\", \" 20.5 \", 30.0, \"4e1\"]"),
           replaced("\"iscrowd\": 1", "\"iscrowd\": true"),
           replaced("\"iscrowd\": 0", "\"iscrowd\": null"),
           replaced("\"iscrowd\": 1", "\"iscrowd\": \"1\""),
           replaced("\"category_id\": 90", "\"category_id\": 90.0"),
           replaced("\"height\": 100", "\"height\": \"100\""),
           replaced("\"area\": 702.1", "\"area\": \"702.1\""),
       }) {
    const CocoAnnotations found = parse(text);
    ASSERT_EQ(found.images.size(), plain.images.size()) << text;
    for (size_t i = 0; i < plain.images.size(); ++i) {
      EXPECT_EQ(found.images[i].boxes, plain.images[i].boxes) << text;
      EXPECT_EQ(found.images[i].height, plain.images[i].height) << text;
    }
    EXPECT_EQ(found.categories.entries(), plain.categories.entries()) << text;
    EXPECT_EQ(found.without_image, 1u) << text;
  }
}

TEST(Coco, KeepsTextsApartThatAreIdsAndLookLikeTheSameNumber) {
  constexpr const char* kIds[] = {"7",       "\"007\"",  "\"7.0\"", "\" 7\"", "\"+7\"", "100",
                                  "\"1e2\"", "\"0x64\"", "\"-0\"",  "0",      "\"\"",   "\"a\""};
  std::string images, annotations;
  for (const char* id : kIds) {
    const char* comma = images.empty() ? "" : ", ";
    images +=
        fmt::format(R"({}{{"id": {}, "file_name": "a", "height": 9, "width": 9}})", comma, id);
    annotations +=
        fmt::format(R"({}{{"image_id": {}, "category_id": 1, "bbox": [2, 2, 4, 4]}})", comma, id);
  }
  const CocoAnnotations coco = parse(fmt::format(R"({{"images": [{}], "annotations": [{}],
                            "categories": [{{"id": 1, "name": "cat"}}]}})",
                                                 images, annotations));
  ASSERT_EQ(coco.images.size(), std::size(kIds));
  for (size_t i = 0; i < coco.images.size(); ++i)
    EXPECT_EQ(coco.images[i].boxes.size(), 1u) << kIds[i];
}

TEST(Coco, TakesTheTextOfANumberForTheNumber) {
  for (const auto& [id, used] : {std::pair("9", "\"9\""), std::pair("\"9\"", "9")}) {
    const std::string json = fmt::format(
        R"({{"images": [{{"id": {}, "file_name": "a", "height": 9, "width": 9}}],
             "annotations": [{{"image_id": {}, "category_id": 1, "bbox": [2, 2, 4, 4]}}],
             "categories": [{{"id": 1, "name": "cat"}}]}})",
        id, used);
    EXPECT_EQ(parse(json).images[0].boxes.size(), 1u) << json;
  }
}

TEST(Coco, KeepsBoxesInPixelsWhereAnImageHasNoSize) {
  for (const char* size : {"\"height\": null, \"width\": 200", "\"license\": 1"}) {
    const CocoAnnotations coco = parse(replaced("\"height\": 100, \"width\": 200", size));
    EXPECT_EQ(coco.images[0].height, 0);
    EXPECT_EQ(coco.images[0].width, 0);
    EXPECT_EQ(
        coco.images[0].boxes[0],
        (Box{.ymin = 20.5f, .xmin = 10, .ymax = 60.5f, .xmax = 40, .label = 90, .area = 702.1f}));
  }
}

TEST(Coco, CountsBoxesOfAnotherUnit) {
  EXPECT_EQ(parse(replaced("[10, 20.5, 30, 40]", "[0.05, 0.2, 0.1, 0.4]")).problems,
            (images::BoxProblems{.no_area = 1, .outside = 1, .in_first_pixel = 1}));
  EXPECT_EQ(parse(replaced("[10, 20.5, 30, 40]", "[10, 20.5, 500, 40]")).problems,
            (images::BoxProblems{.no_area = 1, .outside = 1, .far_outside = 1}));
}

TEST(Coco, CountsBoxesThatFitOnlyAsCorners) {
  const auto by_corners = [](const char* box) {
    return parse(replaced("[10, 20.5, 30, 40]", box)).by_corners;
  };
  EXPECT_EQ(by_corners("[120, 40, 180, 90]"), 1u);  // the picture has 200 x 100 pixels
  EXPECT_EQ(by_corners("[10, 60, 80, 90]"), 1u);
  EXPECT_EQ(by_corners("[120, 40, 80.5, 60]"), 0u);  // only a rounding over the border
  EXPECT_EQ(by_corners("[120, 40, 110, 60]"), 0u);   // x2 would be less than x1
  EXPECT_EQ(by_corners("[120, 40, 201, 60]"), 0u);   // x2 would be outside as well
  EXPECT_EQ(parse(replaced("[10, 20.5, 30, 40]", "[10, 60, 80, 90]")).first_by_corners,
            "annotations[0] (line 4, column 5)");
}

// A file with one box of each of the categories `boxes`.
std::string with_categories(const std::string& categories, const std::vector<int>& boxes) {
  std::string annotations;
  for (const int category : boxes)
    annotations += fmt::format(R"({}{{"image_id": 1, "category_id": {}, "bbox": [2, 2, 4, 4]}})",
                               annotations.empty() ? "" : ", ", category);
  return fmt::format(R"({{"images": [{{"id": 1, "file_name": "a.jpg", "height": 9, "width": 9}}],
      "annotations": [{}], "categories": [{}]}})",
                     annotations, categories);
}

std::vector<int32_t> class_ids(const CocoAnnotations& coco) {
  std::vector<int32_t> ids;
  for (const LabelMap::Entry& entry : coco.categories.entries()) ids.push_back(entry.id);
  return ids;
}

// Roboflow writes categories in this way.
const std::string kDigit = R"({"id": 1, "name": "digit", "supercategory": "digit"})";
const std::string kVehicles =
    R"({"id": 0, "name": "vehicle", "supercategory": "none"},
       {"id": 1, "name": "car", "supercategory": "vehicle"},
       {"id": 2, "name": "truck", "supercategory": "vehicle"})";

TEST(Coco, LeavesOutCategoriesThatOnlyGroupOthersOrHaveTheirNames) {
  const auto ids = [&](const std::string& categories) {
    return class_ids(parse(with_categories(categories, {1})));
  };
  EXPECT_THAT(ids(R"({"id": 0, "name": "digit", "supercategory": "none"}, )" + kDigit),
              ElementsAre(1));
  EXPECT_THAT(ids(R"({"id": 0, "name": "digit"}, )" + kDigit), ElementsAre(1));
  EXPECT_THAT(ids(kDigit + R"(, {"id": 7, "name": "digit"})"), ElementsAre(1));
  EXPECT_THAT(ids(kVehicles), ElementsAre(1, 2));
  EXPECT_THAT(parse(with_categories(kVehicles, {1})).categories_left_out, ElementsAre("vehicle"));
  EXPECT_THAT(
      parse(with_categories(kDigit + R"(, {"id": 7, "name": "digit"})", {1})).categories_left_out,
      ElementsAre("digit"));
  // One of another id than 0 is a class, and so is one that nobody is below or that is below
  // another one itself.
  EXPECT_THAT(ids(R"({"id": 1, "name": "cat", "supercategory": "animal"},
                     {"id": 2, "name": "animal", "supercategory": "none"})"),
              ElementsAre(1, 2));
  EXPECT_THAT(ids(R"({"id": 1, "name": "person", "supercategory": "person"},
                     {"id": 2, "name": "car", "supercategory": null}, {"id": 0, "name": "bus", "supercategory": 5})"),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(ids(R"({"id": 0, "name": "cat", "supercategory": "animal"},
                     {"id": 1, "name": "animal"}, {"id": 2, "name": "kitten", "supercategory": "cat"})"),
              ElementsAre(0, 1, 2));
}

// Training and validation data have the same list of categories, and boxes of different ones.
TEST(Coco, NumbersClassesByTheListAloneWhateverBoxesAFileHas) {
  for (const std::string& categories :
       {kVehicles, kDigit + R"(, {"id": 7, "name": "digit"}, {"id": 8, "name": "letter"})",
        R"({"id": 0, "name": "digit"}, {"id": 9, "name": "letter"}, )" + kDigit,
        std::string(R"({"id": 1, "name": "animal"},
                       {"id": 2, "name": "cat", "supercategory": "animal"},
                       {"id": 3, "name": "dog", "supercategory": "animal"})")}) {
    const CocoAnnotations none = parse(with_categories(categories, {}));
    int read = 0;
    for (int category = 0; category < 10; ++category) {
      const std::string json = with_categories(categories, {category});
      if (json.find(fmt::format(R"("id": {}, "name")", category)) == std::string::npos) continue;
      if (categories == kVehicles && category == 0) continue;
      const CocoAnnotations one = parse(json);
      EXPECT_EQ(one.categories.entries(), none.categories.entries()) << json;
      EXPECT_EQ(one.categories_left_out, none.categories_left_out) << json;
      ++read;
    }
    EXPECT_GE(read, 2) << categories;
  }
}

TEST(Coco, TakesBoxesOfACategoryForTheOneOfItsName) {
  const std::string digits = kDigit + R"(, {"id": 7, "name": "digit"})";
  EXPECT_EQ(parse(with_categories(digits, {7})).images[0].boxes[0].label, 1);
  EXPECT_THAT(error_of([&] {
                parse(with_categories(digits, {1, 7}));
              }),
              HasSubstr("expected each name once, found \"digit\" for ids 1 and 7"));
  for (const std::string& twice :
       {kDigit, std::string(R"({"id": 7, "name": "letter"}, {"id": 7, "name": "digit"})")})
    EXPECT_THAT(error_of([&] { parse(with_categories(kDigit + ", " + twice, {1})); }),
                HasSubstr("expected each id once"));
}

TEST(Coco, RefusesABoxOfACategoryThatIsNoClass) {
  EXPECT_THAT(
      error_of([&] {
        parse(with_categories(kVehicles, {1, 0}));
      }),
      AllOf(HasSubstr("annotations[1].category_id: "),
            HasSubstr("expected the id of a class, found 0 for \"vehicle\", which is the "
                      "supercategory of others and no class itself; with an id above 0 it is one "
                      "(line 2, column ")));
}

TEST(Coco, RefusesEveryTruncation) {
  for (size_t size = 0; size < kSmall.size(); ++size) {
    EXPECT_THAT(error_of([&] { parse(kSmall.substr(0, size)); }), HasSubstr("FILE: ")) << size;
  }
}

}  // namespace
}  // namespace muster::records
