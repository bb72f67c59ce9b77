#include "trainer/data/images/coco_images.h"

#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "tests/unit/trainer/data/images/objects.h"
#include "tests/unit/trainer/images/fixture.h"

namespace muster::data {
namespace {

using detection::Box;
using detection::Object;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CocoImages, AreTheImagesWithTheirObjects) {
  const TestFolder folder;
  CocoFolder coco(folder.path(), {7, 3, 90});  // classes 1, 0 and 2
  coco.add(picture(0, 20, 40), {{7, {10, 5, 20, 10}, false}, {90, {0, 0, 40, 20}, true}});
  coco.add(picture(1, 30, 30), {});
  coco.add(picture(2, 24, 32), {{3, {16, 12, 16, 12}, false}});
  spec::DataSource source = coco.source();
  for (const bool cache : {true, false}) {
    source.cache = cache;
    const auto dataset = open_dataset(source);
    EXPECT_EQ(dataset->size(), 3u);
    EXPECT_EQ(dataset->label_kind(), compute::LabelKind::objects);
    EXPECT_EQ(dataset->object_classes(), 3);
    EXPECT_EQ(dataset->label_count(), 802);
    EXPECT_THAT(dataset->format().shape, ElementsAre(8, 10, 3));
    EXPECT_THAT(dataset->describe(2), HasSubstr("images/2.png"));
    const std::vector<RowObjects> found = objects_of(*dataset);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].height, 20);
    EXPECT_EQ(found[0].width, 40);
    EXPECT_THAT(found[0].objects,
                ElementsAre(Object{Box{0.25f, 0.25f, 0.75f, 0.75f}, 1, 1, false, 200},
                            Object{Box{0, 0, 1, 1}, 2, 1, true, 800}));
    EXPECT_THAT(found[1].objects, IsEmpty());
    EXPECT_THAT(found[2].objects, ElementsAre(Object{Box{0.5f, 0.5f, 1, 1}, 0, 1, false, 192}));
  }
}

TEST(CocoImages, UseThePartThatTheSelectionLeaves) {
  const TestFolder folder;
  CocoFolder coco(folder.path());
  for (int i = 0; i < 5; ++i) coco.add(picture(i, 10, 10), {{1, {0, 0, 2.0 * i + 2, 10}, false}});
  spec::DataSource source = coco.source();
  const std::vector<RowObjects> all = objects_of(*open_dataset(source));
  source.skip = 1;
  source.take = 3;
  EXPECT_EQ(objects_of(*open_dataset(source)), (std::vector<RowObjects>{all[1], all[2], all[3]}));
}

// The box and the crowd come with the image that takes the place.
TEST(CocoImages, ThatAreDamagedAreReplacedTogetherWithTheirObjects) {
  const TestFolder folder;
  CocoFolder coco(folder.path());
  for (int i = 0; i < 4; ++i) coco.add(picture(i, 10, 10), {{1, {0, 0, 2.0 * i + 2, 10}, false}});
  spec::ImageSettings images = settings(8, 10);
  images.max_corrupt = 0.5;
  spec::DataSource source = coco.source(images);
  std::vector<RowObjects> wanted = objects_of(*open_dataset(source));
  put(coco.image(1), "no image");
  std::filesystem::remove(coco.image(3));
  wanted[1] = wanted[2];
  wanted[3] = wanted[0];
  for (const bool cache : {true, false}) {
    source.cache = cache;
    EXPECT_EQ(objects_of(*open_dataset(source)), wanted) << cache;
  }
  std::get<spec::CocoSource>(source.kind).images.max_corrupt = 0.25;
  const auto read = [&] { objects_of(*open_dataset(source)); };
  try {
    read();
    FAIL() << "two of four are damaged";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("images/3.png"),
                      HasSubstr("at most a share of 0.25 of 4, as maxCorrupt says, found 2")));
  }
}

TEST(CocoImages, LeaveOutBoxesThatCannotBeUsedAndCutThoseThatReachOver) {
  const TestFolder folder;
  CocoFolder coco(folder.path());
  coco.add(picture(0, 20, 40), {{1, {-10, 5, 20, 30}, false},
                                {1, {5, 5, 0, 5}, false},
                                {1, {5, 5, 5, -5}, false},
                                {1, {50, 5, 5, 5}, false},
                                {1, {1e300, 0, 1, 1}, false},
                                {1, {0, 0, 1e300, 1e300}, false}});
  EXPECT_THAT(objects_of(*open_dataset(coco.source()))[0].objects,
              ElementsAre(Object{Box{0.25f, 0, 1, 0.25f}, 0, 1, false, 150}));
}

TEST(CocoImages, HaveTheFirstHundredOfManyBoxes) {
  const TestFolder folder;
  CocoFolder coco(folder.path());
  std::vector<Annotation> many;
  for (int i = 0; i < 10000; ++i) many.push_back({1, {i % 100 * 0.1, i / 100 * 0.1, 5, 5}, false});
  coco.add(picture(0, 20, 20), many);
  coco.add(picture(1, 20, 20), {{1, {0, 0, 20, 20}, false}});
  const std::vector<RowObjects> found = objects_of(*open_dataset(coco.source()));
  ASSERT_EQ(found[0].objects.size(), detection::ObjectList::kMost);
  for (size_t i = 0; i < found[0].objects.size(); ++i)
    EXPECT_FLOAT_EQ(found[0].objects[i].box.xmin, static_cast<float>(i) * 0.005f);
  EXPECT_EQ(found[1].objects.size(), 1u) << "those of the row before are left";
}

// The picture is stored with 19 x 27 pixels, and seen with 27 x 19.
TEST(CocoImages, HaveBoxesThatFitThePictureAsItIsSeen) {
  const TestFolder folder;
  put(folder.path() / "turned.jpg", images::fixture("orientation-6.jpg"));
  const auto boxes_of = [&](const std::string& size) {
    put(folder.path() / "coco.json",
        R"({"images": [{"id": 1, "file_name": "turned.jpg")" + size + R"(}],
            "annotations": [{"image_id": 1, "category_id": 1, "bbox": [3, 2, 12, 8]}],
            "categories": [{"id": 1, "name": "cat"}]})");
    spec::CocoSource coco;
    coco.annotations = folder.path() / "coco.json";
    coco.folder = folder.path();
    const CocoImages images(records::CocoAnnotations::read(coco.annotations), coco, {0, 1});
    EncodedImage image;
    images.read(0, image);
    const images::Box& box = image.boxes.at(0);
    return std::vector<float>{box.ymin * 27, box.xmin * 19, box.ymax * 27, box.xmax * 19};
  };
  using testing::FloatNear, testing::ElementsAre;
  const auto are = [](float ymin, float xmin, float ymax, float xmax) {
    return ElementsAre(FloatNear(ymin, 1e-4f), FloatNear(xmin, 1e-4f), FloatNear(ymax, 1e-4f),
                       FloatNear(xmax, 1e-4f));
  };
  EXPECT_THAT(boxes_of(R"(, "height": 27, "width": 19)"), are(2, 3, 10, 15));
  EXPECT_THAT(boxes_of(R"(, "height": 19, "width": 27)"), are(3, 9, 15, 17));
  EXPECT_THAT(boxes_of(""), are(2, 3, 10, 15));
}

TEST(CocoImages, OfACategoryThatIsNotThereAreRefusedByName) {
  const TestFolder folder;
  CocoFolder coco(folder.path(), {1, 2});
  coco.add(picture(0, 20, 20), {{1, {0, 0, 5, 5}, false}, {3, {0, 0, 5, 5}, false}});
  EXPECT_THAT(error_of(coco.source()),
              AllOf(HasSubstr("annotations.json: annotations[1].category_id: "),
                    HasSubstr("expected the id of a category, found 3")));
}

}  // namespace
}  // namespace muster::data
