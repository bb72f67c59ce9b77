#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "trainer/compute/cpu/program.h"

namespace muster::compute::cpu {
namespace {

// Returns the resident memory of this process, in bytes.
int64_t resident() {
  int64_t pages = 0;
  std::ifstream file("/proc/self/statm");
  file >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

TEST(Arena, IsZeroAndAlignedToPagesWhereThatIsAskedFor) {
  Arena arena;
  const Block first = arena.add(4), pages = arena.add_pages(4096), last = arena.add(100);
  arena.allocate();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.floats(pages)) % Arena::kPage, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.floats(last)) % 64, 0u);
  for (int i = 0; i < 1024; ++i) EXPECT_EQ(arena.floats(pages)[i], 0.0f);
  EXPECT_EQ(arena.floats(first)[0], 0.0f);
  EXPECT_EQ(arena.floats(last)[24], 0.0f);
}

// The largest batch may be much larger than any real one: rows that never come must cost nothing.
TEST(Arena, TakesMemoryOnlyWhereItIsWritten) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer's shadow of the arena is resident too";
#endif
  constexpr int64_t kBytes = int64_t{256} << 20;
  Arena arena;
  const Block first = arena.add(64), large = arena.add_pages(kBytes), last = arena.add(64);
  const int64_t before = resident();
  arena.allocate();
  arena.floats(first)[0] = arena.floats(last)[0] = 1;
  EXPECT_LT(resident() - before, kBytes / 2);
  EXPECT_EQ(arena.floats(large)[kBytes / 4 - 1], 0.0f);
}

}  // namespace
}  // namespace muster::compute::cpu
