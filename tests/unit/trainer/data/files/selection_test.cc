#include "trainer/data/files/selection.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using spec::SplitPart;
using testing::HasSubstr;

struct Case {
  const char* name;
  Selection selection;
  uint64_t first;
  uint64_t count;
};

class Select : public testing::TestWithParam<Case> {};

TEST_P(Select, GivesThePart) {
  const Selected part = select(GetParam().selection, 10, "file");
  EXPECT_EQ(part.first, GetParam().first);
  EXPECT_EQ(part.count, GetParam().count);
}

INSTANTIATE_TEST_SUITE_P(Table, Select,
                         testing::Values(Case{"All", {}, 0, 10}, Case{"Skip", {.skip = 9}, 9, 1},
                                         Case{"Take", {.take = 10}, 0, 10},
                                         Case{"Both", {2, 3}, 2, 3},
                                         Case{"First", {0, -1, 0.75, SplitPart::first}, 0, 7},
                                         Case{"Rest", {0, -1, 0.75, SplitPart::rest}, 7, 3},
                                         Case{"FirstOfSome", {2, 5, 0.5, SplitPart::first}, 2, 2},
                                         Case{"RestOfSome", {2, 5, 0.5, SplitPart::rest}, 4, 3}),
                         [](const auto& info) { return info.param.name; });

class SelectRefuses : public testing::TestWithParam<std::pair<Selection, const char*>> {};

TEST_P(SelectRefuses, NamingWhatLeavesNothing) {
  try {
    select(GetParam().first, 10, "file");
    ADD_FAILURE() << "no error";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("file: "));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().second));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, SelectRefuses,
    testing::Values(
        std::pair(Selection{.skip = 10}, "skip: expected less than its 10 samples, found 10"),
        std::pair(Selection{.take = 11}, "from 1 to 10"),
        std::pair(Selection{.take = 0}, "found 0"),
        std::pair(Selection{0, 1, 0.5, SplitPart::first},
                  "split: expected a part with at least one of 1 samples"),
        std::pair(Selection{.skip = INT64_MAX, .take = INT64_MAX}, "skip: expected less than")));

}  // namespace
}  // namespace muster::data
