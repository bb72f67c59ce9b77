#include "operator/local/copy/copy_wire.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "common/system/descriptor.h"
#include "tests/unit/common/error_of.h"

namespace muster::local {
namespace {

using test::error_of;
using testing::HasSubstr;

class CopyWireTest : public testing::Test {
 protected:
  CopyWireTest() {
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_ = Descriptor(ends[0]);
    write_ = Descriptor(ends[1]);
  }
  CopyWire here() { return {read_.get(), -1}; }
  CopyWire there() { return {-1, write_.get()}; }

  Descriptor read_, write_;
};

TEST_F(CopyWireTest, TextsAndBytesComeAsTheyWereSent) {
  CopyWire here = this->here(), there = this->there();
  there.send("hello from a shell\nGREETING");
  there.say("path /a b\nc");
  there.say(".");
  there.say("file 3");
  there.send(std::string_view("\0.\0x", 4));
  there.say("end");
  here.skip_to("GREETING");
  EXPECT_EQ(here.hear(), "path /a b\nc");
  EXPECT_EQ(here.hear_one_of("file"), "3");
  std::string bytes;
  here.receive(4, [&](std::string_view piece) { bytes += piece; });
  EXPECT_EQ(bytes, std::string("\0.\0x", 4));
  EXPECT_EQ(here.hear_one_of("file"), std::nullopt);
}

TEST_F(CopyWireTest, ItsEndIsSaid) {
  CopyWire here = this->here();
  this->there().send("half");
  write_.reset();
  EXPECT_THAT(error_of<BrokenWire>([&] { here.hear(); }), HasSubstr("the connection has ended"));
  EXPECT_THAT(error_of<BrokenWire>([&] { here.receive(5, [](std::string_view) {}); }),
              HasSubstr("the connection has ended"));
}

TEST_F(CopyWireTest, AProblemOfTheHostIsThrownEvenIfItTakesNoMore) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  const Descriptor closed(ends[1]);
  CopyWire here(read_.get(), closed.get());
  this->there().say("problem no room");
  write_.reset();
  EXPECT_EQ(error_of<Unavailable>([&] { here.say("file 1"); }), "no room");
  EXPECT_THAT(error_of<BrokenWire>([&] { here.say("file 1"); }), HasSubstr("has ended"));
}

TEST_F(CopyWireTest, WhatIsNoneOfItIsRefused) {
  CopyWire here = this->here();
  this->there().say("what");
  EXPECT_THAT(error_of<BrokenWire>([&] { here.hear_one_of("lacks"); }),
              HasSubstr(R"(expected "lacks" or "end", found "what")"));
  for (const char* text : {"", "-1", "2", "1x", "18446744073709551616"})
    EXPECT_THAT(error_of([&] { parse_index(text, 2); }), HasSubstr("a number below 2")) << text;
  for (const char* text : {"", "file", "file 1 2", "file 1 2 644", "file x 2 644 name", "link a"})
    EXPECT_THAT(error_of([&] { parse_entry(text); }), HasSubstr("an entry of a copy")) << text;
}

TEST(CopyEntryText, IsReadAsItWasWritten) {
  const CopyEntry file{"a b/\nc ", false, 1ULL << 40, -17, 0755};
  const CopyEntry read = parse_entry(to_text(file));
  EXPECT_EQ(read.name, file.name);
  EXPECT_EQ(read.size, file.size);
  EXPECT_EQ(read.modified, file.modified);
  EXPECT_EQ(read.mode, file.mode);
  EXPECT_FALSE(read.is_folder);
  const CopyEntry folder = parse_entry(to_text({.name = " x", .is_folder = true}));
  EXPECT_EQ(folder.name, " x");
  EXPECT_TRUE(folder.is_folder);
  EXPECT_EQ(parse_entry(to_text({.name = "", .size = 3})).name, "");
}

}  // namespace
}  // namespace muster::local
