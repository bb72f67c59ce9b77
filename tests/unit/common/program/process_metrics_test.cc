#include "common/program/process_metrics.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <tuple>
#include <vector>

#include "tests/unit/common/temporary_folder.h"

namespace muster {
namespace {

using prometheus::MetricType;

double value_of(const std::string& name) {
  for (const prometheus::MetricFamily& family : process_metrics()) {
    if (family.name != name) continue;
    const bool counts = family.type == MetricType::Counter;
    EXPECT_EQ(counts, name.ends_with("_total")) << name;
    return counts ? family.metric.at(0).counter.value : family.metric.at(0).gauge.value;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TEST(ProcessMetrics, SayWhatTheProcessUses) {
  const double memory = value_of("process_resident_memory_bytes");
  EXPECT_GT(memory, 1e6);
  EXPECT_GT(value_of("process_virtual_memory_bytes"), memory);
  std::vector<char> more(64 << 20, 'x');
  EXPECT_GT(value_of("process_resident_memory_bytes"), memory + 32e6) << more.back();
  EXPECT_GT(value_of("process_cpu_seconds_total"), 0);
  EXPECT_GE(value_of("process_network_receive_bytes_total"), 0);
  EXPECT_GE(value_of("process_network_transmit_bytes_total"), 0);
  EXPECT_GT(memory_limit_bytes(), memory);
}

TEST(ProcessMetrics, KnowTheLimitOfMemoryOfBothVersionsOfControlGroups) {
  const double none = std::numeric_limits<double>::infinity();
  for (const auto& [file, text, limit] :
       {std::tuple("memory.max", "536870912", 536870912.0), std::tuple("memory.max", "max", none),
        std::tuple("memory/memory.limit_in_bytes", "536870912", 536870912.0),
        std::tuple("memory/memory.limit_in_bytes", "9223372036854771712", none)}) {
    const test::TemporaryFolder folder;
    std::filesystem::create_directories((folder.path() / file).parent_path());
    std::ofstream(folder.path() / file) << text << "\n";
    EXPECT_EQ(memory_limit_bytes(folder.path()), limit) << file << " " << text;
  }
  EXPECT_EQ(memory_limit_bytes("/nowhere"), none);
}

TEST(ProcessMetrics, CountFilesThatAreOpen) {
  const double before = value_of("process_open_fds");
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(value_of("process_open_fds"), before + 1);
  ::close(file);
  EXPECT_EQ(value_of("process_open_fds"), before);
  EXPECT_GT(value_of("process_max_fds"), before);
}

TEST(ProcessMetrics, KnowWhenTheProcessWasStarted) {
  const double age = unix_now() - value_of("process_start_time_seconds");
  EXPECT_GT(age, -5);  // the time of the boot is in whole seconds
  EXPECT_LT(age, 24 * 3600);
}

TEST(ProcessMetrics, HaveTheLabelsThatAreAskedFor) {
  for (const prometheus::MetricFamily& family : process_metrics({{"role", "ps"}, {"index", "0"}})) {
    ASSERT_EQ(family.metric.size(), 1u);
    ASSERT_EQ(family.metric[0].label.size(), 2u);
    EXPECT_EQ(family.metric[0].label[1].name, "role");
    EXPECT_FALSE(family.help.empty());
  }
}

TEST(ProcessMetrics, HaveTheVersionOfTheProgram) {
  const prometheus::MetricFamily info = build_info("muster-trainer", "0.1.0", {{"role", "ps"}});
  EXPECT_EQ(info.name, "muster_build_info");
  ASSERT_EQ(info.metric.size(), 1u);
  EXPECT_EQ(info.metric[0].gauge.value, 1);
  std::map<std::string, std::string> labels;
  for (const auto& label : info.metric[0].label) labels[label.name] = label.value;
  EXPECT_EQ(labels, (std::map<std::string, std::string>{
                        {"program", "muster-trainer"}, {"role", "ps"}, {"version", "0.1.0"}}));
}

}  // namespace
}  // namespace muster
