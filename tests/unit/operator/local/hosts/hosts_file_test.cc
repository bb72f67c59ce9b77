#include "operator/local/hosts/hosts_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/system/file.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::local {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class HostsFileTest : public testing::Test {
 protected:
  HostsFile load(const std::string& text) {
    write_file_atomically(folder_.path() / "hosts.yaml", text);
    return load_hosts(folder_.path() / "hosts.yaml");
  }
  std::string problem_of(const std::string& text) {
    return test::error_of([&] { load(text); });
  }

  test::TemporaryFolder folder_;
};

TEST_F(HostsFileTest, ANameIsEnough) {
  const HostsFile file = load("hosts: [{name: rack-1}]");
  ASSERT_EQ(file.hosts.size(), 1u);
  EXPECT_EQ(file.hosts[0].destination, "rack-1");
  EXPECT_EQ(file.hosts[0].address, "rack-1");
  EXPECT_EQ(file.hosts[0].slots, 0);
  EXPECT_THAT(file.ssh, ElementsAre("ssh"));
  EXPECT_EQ(file.hosts[0].muster, "muster");
  EXPECT_TRUE(file.copy.empty());
  EXPECT_FALSE(file.copy_muster);
}

TEST_F(HostsFileTest, WhatIsCopiedIsKnownByItsLine) {
  const HostsFile file = load("hosts: [{name: a}]\ncopyMuster: true\ncopy:\n- train.py\n- /data\n");
  EXPECT_TRUE(file.copy_muster);
  ASSERT_EQ(file.copy.size(), 2u);
  EXPECT_EQ(file.copy[0].path, "train.py");
  EXPECT_THAT(file.copy[1].where, testing::EndsWith("hosts.yaml:5: copy[1]"));
}

TEST_F(HostsFileTest, EverythingMayBeSaid) {
  const HostsFile file = load(
      "hosts: [{name: a, ssh: me@a, address: 10.0.0.7, slots: 3}]\nssh: [ssh, -p, '22']\n"
      "muster: /opt/my tools/muster\n");
  EXPECT_EQ(file.hosts[0].destination, "me@a");
  EXPECT_EQ(file.hosts[0].address, "10.0.0.7");
  EXPECT_EQ(file.hosts[0].slots, 3);
  const std::vector<std::string> command = remote_command(file, file.hosts[0], "survey");
  EXPECT_THAT(std::vector(command.begin(), command.begin() + 3), ElementsAre("ssh", "-p", "22"));
  EXPECT_THAT(std::vector(command.end() - 3, command.end()),
              ElementsAre("-T", "me@a", "'/opt/my tools/muster' host survey"));
}

TEST_F(HostsFileTest, WhatIsWrongIsNamedByItsLine) {
  EXPECT_THAT(problem_of(""), HasSubstr("hosts"));
  EXPECT_THAT(problem_of("hosts: []"), HasSubstr("hosts.yaml:1: hosts: expected a list of 1"));
  EXPECT_THAT(problem_of("hosts: [{name: a}]\nslot: 2\n"), HasSubstr("hosts.yaml:2: slot"));
  EXPECT_THAT(problem_of("hosts:\n- {name: a, slots: 0}\n"),
              HasSubstr("hosts.yaml:2: hosts[0].slots"));
  EXPECT_THAT(problem_of("hosts:\n- {name: a}\n- {name: a}\n"),
              AllOf(HasSubstr("hosts.yaml:3: hosts[1].name: expected names that differ"),
                    HasSubstr("hosts.yaml:2")));
  EXPECT_THAT(problem_of("hosts: [{name: a}]\ncopy: data\n"),
              HasSubstr("hosts.yaml:2: copy: expected a list"));
  EXPECT_THAT(problem_of("hosts: [{name: a}]\ncopy: [data, '']\n"),
              HasSubstr("hosts.yaml:2: copy[1]: expected"));
  EXPECT_THAT(problem_of("hosts: [{name: a}]\ncopymuster: true\n"), HasSubstr("copyMuster?"));
  EXPECT_THAT(problem_of("hosts: [{name: a}]\ncopyMuster: true\nmuster: /opt/muster\n"),
              HasSubstr("hosts.yaml:3: muster: expected no other muster beside copyMuster: true"));
}

TEST_F(HostsFileTest, NothingInItIsAnOptionOfSsh) {
  EXPECT_THAT(problem_of("hosts: [{name: -oProxyCommand=x}]"), HasSubstr("hosts[0].name"));
  EXPECT_THAT(problem_of("hosts: [{name: '-F'}]"), HasSubstr("hosts[0].name"));
  EXPECT_THAT(problem_of("hosts: [{name: a, ssh: -oProxyCommand=x}]"), HasSubstr("hosts[0].ssh"));
}

}  // namespace
}  // namespace muster::local
