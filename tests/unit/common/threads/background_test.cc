#include "common/threads/background.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <stdexcept>

namespace muster {
namespace {

int priority() {
  return getpriority(PRIO_PROCESS, 0);
}

TEST(BackgroundTest, GivesWayWhileItWorksAndNotAfter) {
  const int before = priority();
  EXPECT_EQ(in_background([] { return priority(); }), std::min(before + 10, 19));
  EXPECT_EQ(priority(), before);
}

TEST(BackgroundTest, ThrowsWhatTheWorkDoes) {
  EXPECT_THROW(in_background([] { throw std::logic_error("so"); }), std::logic_error);
}

}  // namespace
}  // namespace muster
