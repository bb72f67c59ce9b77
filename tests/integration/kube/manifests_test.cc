// These tests put the table of scalars to kubectl itself.

#include <gtest/gtest.h>

#include <sstream>

#include "common/documents/document.h"
#include "common/system/file.h"
#include "tests/integration/trainer/process.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::integration {
namespace {

struct Case {
  std::string scalar;
  std::string expected;  // as JSON; "error" where kubectl refuses it
};

std::vector<Case> table() {
  std::vector<Case> cases;
  std::istringstream lines(read_file(MUSTER_SOURCE_DIR "/tests/fixtures/scalars/scalars.tsv"));
  for (std::string line; std::getline(lines, line);)
    cases.push_back({line.substr(0, line.find('\t')), line.substr(line.find('\t') + 1)});
  return cases;
}

struct Reading {
  int code = -1;
  std::string output;
};

// Returns what kubectl reads, without a server, from an object to which it adds a label.
Reading read_by_kubectl(const std::string& manifest) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() / "table.yaml";
  write_file_atomically(file, manifest);
  Process kubectl({MUSTER_SOURCE_DIR "/build/tools/kubectl", "label", "--local", "-f", file, "a=b",
                   "-o", "json"},
                  {}, folder.path() / "output", Process::Limits{});
  const int code = kubectl.wait().value_or(-1);
  return {code, read_file(folder.path() / "output")};
}

constexpr const char* kHead = "apiVersion: example.com/v1\nkind: Table\nmetadata: {name: t}\n";

TEST(Manifests, HaveTheScalarsThatKubectlReads) {
  std::string manifest = std::string(kHead) + "values:\n";
  for (const Case& one : table())
    if (one.expected != "error") manifest += "- " + one.scalar + "\n";
  const Reading result = read_by_kubectl(manifest);
  ASSERT_EQ(result.code, 0) << result.output;
  const Json values = Json::parse(result.output)["values"];
  size_t i = 0;
  for (const Case& one : table()) {
    if (one.expected == "error") continue;
    EXPECT_EQ(values.at(i++), Json::parse(one.expected)) << one.scalar;
  }
}

TEST(Manifests, AreRefusedWhereKubectlRefusesThem) {
  for (const Case& one : table()) {
    if (one.expected != "error") continue;
    EXPECT_NE(read_by_kubectl(kHead + ("value: " + one.scalar + "\n")).code, 0) << one.scalar;
  }
}

}  // namespace
}  // namespace muster::integration
