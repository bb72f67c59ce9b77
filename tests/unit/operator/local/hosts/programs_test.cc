#include "operator/local/hosts/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "common/system/file.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/common/temporary_folder.h"

// A script takes ssh's place: the "host" is this machine, with another cache.

namespace muster::local {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kSsh = R"(#!/bin/sh
here=$(dirname "$0")
[ ! -e "$here/lost" ] || { echo "no way" >&2; exit 255; }
export XDG_CACHE_HOME="$here/a cache"
for last; do :; done
echo "hello from a shell"
exec sh -c "$last"
)";

class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest() {
    write_script("ssh", kSsh);
    fs::create_directory(path("bin"));
    fs::copy_file("/bin/echo", path("bin/muster"));
    fs::copy_file("/bin/echo", path("bin/muster-trainer"));
    file_.hosts = {{"a", "a", "a", 1, "muster"}};
    file_.ssh = {path("ssh")};
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  void write_script(const std::string& name, const std::string& text) const {
    write_file_atomically(path(name), text);
    fs::permissions(path(name), fs::perms::owner_all);
  }
  Programs find() const { return find_programs(path("bin/muster"), path("bin/muster-trainer")); }
  std::vector<std::string> send() {
    return send_programs(find(), file_, [] {});
  }
  std::vector<std::string> cached() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path("a cache/muster")))
      if (entry.is_directory()) names.push_back(entry.path().filename());
    return names;
  }
  std::string output_of(const std::string& command) const {
    EXPECT_EQ(std::system((command + " >" + path("output").string()).c_str()), 0);
    return read_file(path("output"));
  }

  test::TemporaryFolder folder_;
  HostsFile file_;
};

TEST_F(ProgramsTest, AreFoundWithTheirLibraries) {
  const Programs programs = find();
  ASSERT_GE(programs.files.size(), 4u);
  EXPECT_THAT(programs.files[0].filename().string(), HasSubstr("ld-linux"));
  EXPECT_THAT(programs.files, testing::Contains(testing::Property(
                                  &fs::path::filename, testing::Eq(fs::path("libc.so.6")))));
  EXPECT_EQ(programs.files.back(), path("bin/muster-trainer"));
  EXPECT_EQ(find().digest, programs.digest);
  std::ofstream(path("bin/muster"), std::ios::app) << "x";
  EXPECT_NE(find().digest, programs.digest);
}

TEST_F(ProgramsTest, HaveTheLibraryOfTablesWhereAJobHasTables) {
  const auto find_all = [&] {
    return find_programs(path("bin/muster"), path("bin/muster-trainer"), true);
  };
  EXPECT_EQ(find_all().digest, find().digest);  // a build without tables
  for (const char* name : {"lib/muster", "lib"}) {
    fs::create_directories(path(name));
    fs::copy_file("/bin/echo", path(name) / "libmuster_tables.so");
    EXPECT_EQ(find_all().files.back(), path(name) / "libmuster_tables.so");
  }
  EXPECT_EQ(find().files.back(), path("bin/muster-trainer"));
}

TEST_F(ProgramsTest, AreSentOnceAndRun) {
  EXPECT_THAT(send(), ElementsAre("copied muster to a"));
  EXPECT_THAT(file_.hosts[0].muster,
              testing::EndsWith("/a cache/muster/programs-" + find().digest + "/muster"));
  EXPECT_EQ(output_of("'" + file_.hosts[0].muster + "' --library-path 'two words' \\$x"),
            "--library-path two words $x\n");
  EXPECT_EQ(output_of("'" + file_.hosts[0].muster + "-trainer' run"), "run\n");
  EXPECT_THAT(send(), IsEmpty());
}

TEST_F(ProgramsTest, OthersAreSentAgainAndOldOnesGo) {
  send();
  const std::string old = "programs-" + find().digest;
  std::ofstream(path("bin/muster"), std::ios::app) << "x";
  EXPECT_THAT(send(), ElementsAre("copied muster to a"));
  EXPECT_EQ(cached().size(), 2u);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(24 * 100);
  fs::last_write_time(path("a cache/muster") / old, long_ago);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_THAT(cached(), ElementsAre("programs-" + find().digest));
}

TEST_F(ProgramsTest, WhatABrokenTransferHasLeftIsRemoved) {
  fs::create_directories(path("a cache/muster/programs.part-killed/lib"));
  const auto hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(3);
  fs::last_write_time(path("a cache/muster/programs.part-killed"), hours_ago);
  EXPECT_THAT(send(), ElementsAre("copied muster to a"));
  EXPECT_THAT(cached(), ElementsAre("programs-" + find().digest));
}

TEST_F(ProgramsTest, OfATransferThatBreaksOffNothingStays) {
  write_script("tar", "#!/bin/sh\nhead -c 100000 >/dev/null\n");
  write_script("ssh",
               "#!/bin/sh\nPATH=" + folder_.path().string() + ":$PATH\n" + std::string(kSsh));
  const std::vector<std::string> notes = send();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0],
              HasSubstr("ssh or sh, which takes a copy of muster, has ended with 1: expected "));
  EXPECT_THAT(cached(), IsEmpty());
}

TEST_F(ProgramsTest, HostsThatShareTheCacheMayTakeThemAtOnce) {
  file_.hosts = {};
  for (const char* name : {"a", "b", "c", "d"}) file_.hosts.push_back({name, name, name, 1, ""});
  send();
  ASSERT_EQ(file_.hosts.size(), 4u);
  for (const Host& host : file_.hosts)
    EXPECT_EQ(output_of("'" + host.muster + "' it runs"), "it runs\n");
  EXPECT_THAT(cached(), ElementsAre("programs-" + find().digest));
}

TEST_F(ProgramsTest, AHostThatCannotHaveThemIsLeftOut) {
  file_.hosts.push_back({"b", "b", "b", 1, "muster"});
  std::ofstream(path("a cache")) << "no folder";
  const std::vector<std::string> notes = send();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes[0],
              HasSubstr("the host a is not used: the connection has ended; ssh or sh, which "
                        "takes a copy of muster, has ended with 1: mkdir: "));
  EXPECT_THAT(file_.hosts, IsEmpty());
}

TEST_F(ProgramsTest, AHostThatIsNotReachedIsLeftOut) {
  std::ofstream(path("lost")) << "";
  EXPECT_THAT(send(), ElementsAre(HasSubstr(
                          "ssh or sh, which takes a copy of muster, has ended with 255: no way")));
}

TEST_F(ProgramsTest, WhatIsNoProgramIsRefused) {
  write_file_atomically(path("bin/muster"), "#!/bin/sh\n");
  EXPECT_THAT(test::error_of([&] { find(); }),
              HasSubstr("which libraries " + path("bin/muster").string() + " needs"));
  EXPECT_THAT(test::error_of([&] { find_programs(path("bin/other"), path("bin/muster-trainer")); }),
              HasSubstr("found " + path("bin/other").string()));
}

}  // namespace
}  // namespace muster::local
