#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "trainer/compute/cpu/program/program.h"

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

// Blocks that are in use at the same moment lie apart; others may lie in the same memory.
TEST(Arena, GivesTheMemoryOfAnUnusedBlockToAnother) {
  Arena arena;
  const Block before = arena.add(64);
  const std::vector<Temporary> wanted = {{4096, 3, 4}, {8192, 2, 3}, {4096, 1, 2}, {64, 0, 4}};
  const std::vector<Block> blocks = arena.add(wanted);
  const Block after = arena.add(64);
  ASSERT_EQ(blocks.size(), wanted.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_GE(blocks[i].end - blocks[i].begin, wanted[i].bytes);
    EXPECT_GE(blocks[i].begin, before.end);
    EXPECT_LE(blocks[i].end, after.begin);
    for (size_t j = 0; j < i; ++j) {
      const bool together = wanted[i].first <= wanted[j].last && wanted[j].first <= wanted[i].last;
      const bool apart = blocks[i].end <= blocks[j].begin || blocks[j].end <= blocks[i].begin;
      EXPECT_TRUE(apart || !together) << i << " and " << j;
    }
  }
  EXPECT_EQ(blocks[0].begin, blocks[2].begin);
  EXPECT_LT(after.begin - before.end, 4096 + 8192 + 4096);
}

// Two phases that use the same memory by different blocks do not run at the same time.
TEST(Program, WaitsBetweenPhasesWhoseBlocksOverlap) {
  Program program;
  std::atomic<int> first{0}, seen{0};
  program.add("first", {writes({0, 128}, Share::own)}, [&](const Step&, TeamThread) { ++first; });
  program.add("second", {writes({64, 256}, Share::own)},
              [&](const Step&, TeamThread) { seen += first.load() == 2; });
  Team team(2, false);
  team.run([&](TeamThread thread) { program.run(Step{}, thread, team, nullptr); });
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace muster::compute::cpu
