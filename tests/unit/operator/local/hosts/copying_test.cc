#include "operator/local/hosts/copying.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::local {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CopyingToHosts, SizesAreReadable) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(999), "999 bytes");
  EXPECT_EQ(size_text(1'250), "1.2 kB");
  EXPECT_EQ(size_text(11'370'000), "11.4 MB");
  EXPECT_EQ(size_text(12'000'000'000'000), "12000.0 GB");
}

// tests/e2e/test_hosts_copy.py has the cases in which everything goes well.
TEST(CopyingToHosts, HostsThatFailAreLeftOutWithWhatSshSays) {
  HostsFile file;
  file.ssh = {"sh", "-c", "echo no way >&2; exit 255"};
  std::vector<KnownHost> usable = {{{"a", "a", "a", 1, "muster"}, "", {}},
                                   {{"b", "b", "b", 1, "muster"}, "", {}}};
  const auto notes = copy_to_hosts(file, "/", {}, usable, [](const CopyProgress&) {});
  const auto why =
      "is not used: the connection has ended; ssh or `muster host receive` has ended "
      "with 255: no way";
  EXPECT_THAT(notes, ElementsAre(HasSubstr(std::string("the host a ") + why),
                                 HasSubstr(std::string("the host b ") + why)));
  EXPECT_THAT(usable, testing::IsEmpty());
}

}  // namespace
}  // namespace muster::local
