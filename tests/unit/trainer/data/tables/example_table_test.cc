#include "trainer/data/tables/example_table.h"

#include <cmath>

#include "gmock/gmock.h"
#include "proto/muster/example.pb.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "trainer/records/record_writer.h"

namespace muster::data {
namespace {

using tables::CellKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

// An example with the features that it is given.
class Row {
 public:
  Row& integers(const char* name, std::vector<int64_t> values) {
    for (const int64_t value : values) of(name).mutable_int64_list()->add_value(value);
    return *this;
  }
  Row& floats(const char* name, std::vector<float> values) {
    for (const float value : values) of(name).mutable_float_list()->add_value(value);
    return *this;
  }
  Row& texts(const char* name, std::vector<std::string> values) {
    for (std::string& value : values) of(name).mutable_bytes_list()->add_value(std::move(value));
    return *this;
  }
  std::string bytes() const { return example_.SerializeAsString(); }

 private:
  tfexample::Feature& of(const char* name) {
    return (*example_.mutable_features()->mutable_feature())[name];
  }
  tfexample::Example example_;
};

std::filesystem::path write(const TestFolder& folder, const std::vector<std::string>& records) {
  const auto path = folder.path() / "t.tfrecord";
  records::RecordWriter writer(path);
  for (const std::string& bytes : records) writer.write(bytes);
  writer.finish();
  return path;
}

TEST(ExampleTable, HasAColumnForEachFeature) {
  const TestFolder folder;
  const auto table = open_examples(write(
      folder, {Row().integers("age", {30}).floats("sizes", {1, 2}).texts("tags", {"a"}).bytes(),
               Row().texts("name", {"x"}).floats("sizes", {}).texts("tags", {"b", "a"}).bytes(),
               Row().integers("age", {9007199254740993}).texts("image", {"\xff"}).bytes()}));
  std::vector<std::string> names;
  std::vector<CellKind> kinds;
  for (const auto& column : table->columns()) {
    names.push_back(column.name);
    kinds.push_back(column.kind);
  }
  EXPECT_THAT(names, ElementsAre("age", "image", "name", "sizes", "tags"));
  EXPECT_THAT(kinds, ElementsAre(CellKind::integer, CellKind::other, CellKind::text,
                                 CellKind::numbers, CellKind::texts));
  EXPECT_THAT(table->rows_of_blocks(), ElementsAre(3));
  std::vector<double> cells(3);
  EXPECT_EQ(table->read_numbers(0, 0, cells), 2);
  EXPECT_THAT(cells, ElementsAre(30, IsNan(), 9007199254740992));
  EXPECT_THAT(table->read_texts(0, 2).cells, ElementsAre(-1, 0, -1));
  EXPECT_THAT(table->read_texts(0, 0).values, ElementsAre("30", "9007199254740993"));
  EXPECT_THAT(table->read_lists(0, 3).ends, ElementsAre(2, 2, 2));
  EXPECT_THAT(table->read_lists(0, 3).numbers, ElementsAre(1, 2));
  EXPECT_THAT(table->read_lists(0, 4).texts.cells, ElementsAre(0, 1, 0));
}

TEST(ExampleTable, HasBlocks) {
  const TestFolder folder;
  std::vector<std::string> records;
  for (int i = 0; i < 5'000; ++i) records.push_back(Row().integers("n", {i}).bytes());
  const auto table = open_examples(write(folder, records));
  EXPECT_THAT(table->rows_of_blocks(), ElementsAre(4'096, 904));
  std::vector<double> first(4'096), last(904);
  table->read_numbers(1, 0, last);
  table->read_numbers(0, 0, first);
  EXPECT_EQ(first.back(), 4'095);
  EXPECT_EQ(last.back(), 4'999);
}

TEST(ExampleTable, RefusesDamageAndTypesThatChange) {
  const TestFolder folder;
  const auto error = [&](const std::vector<std::string>& records) {
    return test::error_of([&] { open_examples(write(folder, records)); });
  };
  EXPECT_THAT(error({"no example"}), HasSubstr("expected a tf.train.Example"));
  EXPECT_THAT(error({Row().integers("n", {1}).bytes(), Row().floats("n", {1}).bytes()}),
              HasSubstr("feature n: expected values of one type in all records"));
  const auto path = write(folder, {Row().integers("n", {1}).bytes()});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THAT(test::error_of([&] { open_examples(path); }), HasSubstr("t.tfrecord"));
}

}  // namespace
}  // namespace muster::data
