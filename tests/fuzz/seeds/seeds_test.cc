#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "common/system/file.h"
#include "tests/fuzz/targets.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class SeedsTest : public testing::TestWithParam<FuzzTarget> {};

// Each target checks by itself what must hold of its input, and ends the process if it does not.
TEST_P(SeedsTest, AreTakenByTheTarget) {
  const FuzzTarget& target = GetParam();
  std::vector<std::string> seeds{""};
  const fs::path corpus = fs::path(MUSTER_SOURCE_DIR) / "tests/fuzz/corpus" / target.name;
  if (fs::exists(corpus))
    for (const auto& entry : fs::directory_iterator(corpus))
      seeds.push_back(read_file(entry.path()));
  for (const std::string& seed : seeds)
    target.run(reinterpret_cast<const uint8_t*>(seed.data()), seed.size());
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, SeedsTest, testing::ValuesIn(fuzz_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster
