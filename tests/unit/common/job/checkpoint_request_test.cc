#include "common/job/checkpoint_request.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(CheckpointRequest, CountsAsFarAsItsFirstWholeCharacters) {
  const std::string most(kLongestRequest, 'x'), less(kLongestRequest - 1, 'x');
  EXPECT_EQ(counted_request(""), "");
  EXPECT_EQ(counted_request(most), most);
  EXPECT_EQ(counted_request(most + "y"), most);
  EXPECT_EQ(counted_request(less + "\u00e9"), less);
}

}  // namespace
}  // namespace muster
