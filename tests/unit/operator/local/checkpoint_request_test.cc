#include "operator/local/checkpoint_request.h"

#include <gtest/gtest.h>

#include "tests/unit/common/temporary_folder.h"

namespace muster::local {
namespace {

TEST(CheckpointRequest, is_the_newest_until_it_is_dropped) {
  const test::TemporaryFolder scratch;
  const JobDirectory directory(scratch.path());
  EXPECT_EQ(requested_checkpoint(directory), "");
  request_checkpoint(directory, "first");
  request_checkpoint(directory, "second");
  EXPECT_EQ(requested_checkpoint(directory), "second");
  drop_checkpoint_request(directory);
  drop_checkpoint_request(directory);
  EXPECT_EQ(requested_checkpoint(directory), "");
}

}  // namespace
}  // namespace muster::local
