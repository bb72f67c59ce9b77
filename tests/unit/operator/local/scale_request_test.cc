#include "operator/local/scale_request.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/common/temporary_folder.h"

namespace muster::local {
namespace {

TEST(ScaleRequest, is_taken_once) {
  const test::TemporaryFolder scratch;
  const JobDirectory directory(scratch.path());
  EXPECT_EQ(take_scale_request(directory), std::nullopt);
  request_scale(directory, 2);
  request_scale(directory, 3);
  EXPECT_EQ(take_scale_request(directory), 3);
  EXPECT_EQ(take_scale_request(directory), std::nullopt);
  request_scale(directory, 2);
  drop_scale_request(directory);
  EXPECT_EQ(take_scale_request(directory), std::nullopt);
}

TEST(ScaleRequest, that_is_none_is_taken_away) {
  const test::TemporaryFolder scratch;
  const JobDirectory directory(scratch.path());
  for (const char* text :
       {"", "{", "[]", "{\"workers\": \"3\"}", "{\"workers\": -1}", "{\"workers\": 99999999999}"}) {
    std::ofstream(directory.scale()) << text;
    EXPECT_EQ(take_scale_request(directory), std::nullopt) << text;
    EXPECT_FALSE(std::filesystem::exists(directory.scale())) << text;
  }
}

}  // namespace
}  // namespace muster::local
