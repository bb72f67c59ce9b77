#include "trainer/data/images/class_folders.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "tests/unit/trainer/data/images/pictures.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of_folder(const std::filesystem::path& folder) {
  try {
    list_class_folders(folder);
  } catch (const Invalid& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> names(const ImageList& list, const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const ImageFile& file : list.files)
    names.push_back(file.path.lexically_relative(folder).string() + " " +
                    std::to_string(file.label));
  return names;
}

TEST(ClassFolders, AreTheClassesInTheOrderOfTheirNames) {
  const TestFolder folder;
  for (const char* file : {"dog/1.jpg", "dog/2.JPEG", "cat/a.png", "Zebra/z.Png"})
    put(folder.path() / file, "");
  const ImageList list = list_class_folders(folder.path());
  EXPECT_THAT(list.classes, ElementsAre("Zebra", "cat", "dog"));
  EXPECT_EQ(list.label_count, 3);
  EXPECT_THAT(names(list, folder.path()),
              ElementsAre("dog/1.jpg 2", "Zebra/z.Png 0", "cat/a.png 1", "dog/2.JPEG 2"));
}

TEST(ClassFolders, PassOverWhatIsNoImage) {
  const TestFolder folder;
  for (const char* file : {"readme.txt", "loose.jpg", ".git/x.jpg", "a/.hidden.jpg", "a/notes.txt",
                           "a/1.jpg", "a/deeper/2.jpg", "empty.jpg/none.txt"})
    put(folder.path() / file, "");
  std::filesystem::create_directories(folder.path() / "b" / "folder.jpg");
  const ImageList list = list_class_folders(folder.path());
  EXPECT_THAT(list.classes, ElementsAre("a", "b", "empty.jpg"));
  EXPECT_THAT(names(list, folder.path()), ElementsAre("a/1.jpg 0"));
  EXPECT_EQ(list.passed_over,
            "2 .txt, 2 beside the folders of the classes, 1 in a folder one level deeper");
}

TEST(ClassFolders, CountWhatTheyPassOverByItsKind) {
  const TestFolder folder;
  for (const char* file : {"a/1.webp", "a/2.WEBP", "a/3.jpg", "b/1.jfif", "b/2.jpe", "b/3.gif",
                           "b/LICENSE", "__MACOSX/a/._3.jpg"})
    put(folder.path() / file, "");
  const ImageList list = list_class_folders(folder.path());
  EXPECT_THAT(list.classes, ElementsAre("a", "b"));
  EXPECT_THAT(names(list, folder.path()), ElementsAre("b/1.jfif 1", "a/3.jpg 0", "b/2.jpe 1"));
  EXPECT_EQ(list.passed_over, "1 .gif, 2 .webp, 1 folder __MACOSX, 1 without an ending");
  std::string others;
  EXPECT_EQ(images_in(folder.path() / "b", &others).size(), 2u);
  EXPECT_EQ(others, "1 .gif, 1 without an ending");
}

// Whoever splits the samples has every class in both parts.
TEST(ClassFolders, SpreadEachClassEvenly) {
  const TestFolder folder;
  for (int i = 0; i < 30; ++i) put(folder.path() / ("a/" + std::to_string(i) + ".jpg"), "");
  for (int i = 0; i < 10; ++i) put(folder.path() / ("b/" + std::to_string(i) + ".jpg"), "");
  const ImageList list = list_class_folders(folder.path());
  ASSERT_EQ(list.files.size(), 40u);
  for (size_t begin = 0; begin < 40; begin += 4) {
    int seconds = 0;
    for (size_t i = begin; i < begin + 4; ++i) seconds += list.files[i].label;
    EXPECT_EQ(seconds, 1) << begin;
  }
}

TEST(ClassFolders, ThatAreNoneAreRefused) {
  const TestFolder folder;
  EXPECT_THAT(error_of_folder(folder.path() / "none"),
              HasSubstr("none: expected a folder of images, found no such folder"));
  EXPECT_THAT(error_of_folder(folder.path()),
              HasSubstr("expected a folder for each class, found none"));
  put(folder.path() / "a/1.gif", "");
  EXPECT_THAT(error_of_folder(folder.path()),
              HasSubstr("expected .jpg, .jpeg, .jpe, .jfif or .png files in the folders of 1 "
                        "classes, found only others: 1 .gif"));
  EXPECT_THAT(error_of_folder(folder.path() / "a/1.gif"),
              HasSubstr("1.gif: expected a folder of images"));
}

}  // namespace
}  // namespace muster::data
