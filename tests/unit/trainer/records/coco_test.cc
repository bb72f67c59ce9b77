#include "trainer/records/coco.h"

#include "gmock/gmock.h"
#include "tests/unit/trainer/records/fixture.h"

namespace muster::records {
namespace {

using images::Box;
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
  EXPECT_EQ(coco.images[0].id, 9);
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
           {"", "FILE: expected COCO annotations: "},
           {"[]", "FILE: expected COCO annotations: "},
           {"{\"images\": " + deep, "FILE: expected COCO annotations: "},
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
           {replaced("[10, 20.5, 30, 40]", "[10, 20.5, 30, NaN]"), "FILE: annotations[0].bbox: "},
           {replaced("[10, 20.5, 30, 40]", "\"10\""),
            "FILE: annotations[0].bbox: expected COCO annotations: expected a list, found \"10\""},
           {replaced("[10, 20.5, 30, 40]", "[10, null, 30, 40]"), "expected a number, found null"},
           {replaced("\"category_id\": 90", "\"category_id\": 2"),
            "annotations[0].category_id: expected COCO annotations: expected the id of a "
            "category, found 2"},
           {replaced("\"category_id\": 90", "\"category_id\": 4294967297"),
            "expected the id of a category, found 4294967297"},
           {replaced("\"id\": 4", "\"id\": 9"),
            "images[1]: expected COCO annotations: expected each id once, found 9 again"},
           {replaced("\"id\": 4", "\"id\": \"4\""),
            "FILE: images[1].id: expected COCO annotations: expected a whole number, found \"4\""},
           {replaced("\"id\": 4", "\"id\": 4.5"), "expected a whole number, found 4.5"},
           {replaced("\"person\"", "7"),
            "categories[1].name: expected COCO annotations: expected a text, found 7"},
           {replaced("\"height\": 100", "\"height\": 0"),
            "images[0].height: expected COCO annotations: expected at least 1, found 0"},
           {replaced("\"id\": 90", "\"id\": 1"), "FILE: categories: expected each id once"},
           {replaced("\"id\": 90", "\"id\": -1"), "categories[0].id: "},
           {replaced("\"toothbrush\"", "\"person\""), "FILE: categories: expected each name once"},
       }) {
    EXPECT_THAT(error_of([&] { parse(row.json); }), HasSubstr(row.message)) << row.message;
  }
}

TEST(Coco, RefusesEveryTruncation) {
  for (size_t size = 0; size < kSmall.size(); ++size) {
    EXPECT_THAT(error_of([&] { parse(kSmall.substr(0, size)); }), HasSubstr("FILE: ")) << size;
  }
}

}  // namespace
}  // namespace muster::records
