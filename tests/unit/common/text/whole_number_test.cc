#include "common/text/whole_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace muster {
namespace {

TEST(WholeNumber, IsTheWholeText) {
  EXPECT_EQ(whole_number<int>("17"), 17);
  EXPECT_EQ(whole_number<int>("-17"), -17);
  EXPECT_EQ(whole_number<uint64_t>("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", " 1", "1 ", "+1", "0x1", "1e3", "1.0", "one", "2147483648"})
    EXPECT_FALSE(whole_number<int>(text)) << text;
  EXPECT_FALSE(whole_number<uint64_t>("-1"));
  EXPECT_FALSE(whole_number<uint64_t>("18446744073709551616"));
}

TEST(WholeNumber, IsWithinItsBounds) {
  EXPECT_FALSE(whole_number<int>("0", 1, 9));
  EXPECT_EQ(whole_number<int>("1", 1, 9), 1);
  EXPECT_EQ(whole_number<int>("9", 1, 9), 9);
  EXPECT_FALSE(whole_number<int>("10", 1, 9));
}

}  // namespace
}  // namespace muster
