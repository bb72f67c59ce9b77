#include "operator/local/copy/copy_receiver.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "common/system/descriptor.h"
#include "common/system/file.h"
#include "operator/local/copy/copy_sender.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/common/temporary_folder.h"

// Both ends: send_copies() here, and receive_copies() in another thread, for a "host" that is
// another folder.

namespace muster::local {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::HasSubstr;

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
  Descriptor read, write;
};

class Copying : public testing::Test {
 protected:
  Copying() { ::signal(SIGPIPE, SIG_IGN); }

  fs::path here(const std::string& name) const { return folder_.path() / "here" / name; }
  fs::path there(const std::string& name) const { return folder_.path() / "there" / name; }
  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    write_file_atomically(path, text);
  }
  static void set_time(const fs::path& path, time_t seconds) {
    const timespec times[] = {{seconds, 5}, {seconds, 5}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  // Writes a file with a time that no copy has given it.
  static void change(const fs::path& path, const std::string& text, time_t seconds = 1'000'000) {
    write(path, text);
    set_time(path, seconds);
  }
  std::vector<Copy> list(const std::string& name) {
    std::vector<Copy> copies = list_copies({{name, "copy"}}, here(""), "");
    copies[0].path = there(name);
    return copies;
  }
  Sent copy(const std::vector<Copy>& copies) {
    Pipe to, from;
    std::jthread host([&] {
      CopyWire wire(to.read.get(), from.write.get());
      receive_copies(wire);
      from.write.reset();
      to.read.reset();
    });
    const Descriptor in = std::move(from.read), out = std::move(to.write);
    CopyWire wire(in.get(), out.get());
    return send_copies(wire, there("work"), copies, progress_);
  }
  Sent copy(const std::string& name) { return copy(list(name)); }
  std::string problem_of(const std::string& name) {
    return error_of<Unavailable>([&] { copy(name); });
  }
  // All that is below a folder, by name.
  static std::vector<std::string> all_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      names.push_back(entry.path().lexically_relative(folder));
    std::ranges::sort(names);
    return names;
  }

  test::TemporaryFolder folder_;
  CopyProgress progress_;
};

TEST_F(Copying, AHostGetsWhatItLacks) {
  write(here("data/a b"), "one");
  write(here("data/sub/c\nd"), std::string(300'000, 'x'));
  write(here("data/empty file"), "");
  fs::create_directory(here("data/empty"));
  ::chmod(here("data/a b").c_str(), 0750);
  set_time(here("data/a b"), 1'000'000);
  const Sent sent = copy("data");
  EXPECT_EQ(sent.files, 3u);
  EXPECT_EQ(sent.bytes, 300'003u);
  EXPECT_EQ(progress_.wanted, 300'003u);
  EXPECT_EQ(progress_.sent, 300'003u);
  EXPECT_THAT(all_in(there("data")), testing::ContainerEq(all_in(here("data"))));
  EXPECT_EQ(read_file(there("data/a b")), "one");
  EXPECT_EQ(read_file(there("data/sub/c\nd")), std::string(300'000, 'x'));
  EXPECT_TRUE(is_same(*look_at(here("data/a b"), ""), *look_at(there("data/a b"), "")));
  EXPECT_TRUE(fs::is_directory(there("work")));
}

TEST_F(Copying, AFileIsCopiedToItsPath) {
  write(here("deep/train.py"), "print()");
  EXPECT_EQ(copy("deep/train.py").files, 1u);
  EXPECT_EQ(read_file(there("deep/train.py")), "print()");
  EXPECT_THAT(all_in(there("deep")), testing::ElementsAre(".train.py.muster-copy", "train.py"));
}

TEST_F(Copying, OnlyWhatHasChangedIsSentAgain) {
  write(here("data/a"), "one");
  write(here("data/b"), "two");
  copy("data");
  EXPECT_EQ(copy("data").files, 0u);
  change(here("data/b"), "2");
  fs::permissions(here("data/a"), fs::perms::owner_exec, fs::perm_options::add);
  EXPECT_EQ(copy("data").files, 2u);
  EXPECT_EQ(read_file(there("data/b")), "2");
  EXPECT_TRUE((fs::status(there("data/a")).permissions() & fs::perms::owner_exec) !=
              fs::perms::none);
  EXPECT_EQ(copy("data").files, 0u);
}

TEST_F(Copying, WhatIsNoLongerHereIsRemovedThereIfACopyHasPutItThere) {
  write(here("data/sub/deep/a"), "one");
  write(here("data/b"), "two");
  write(here("data/c"), "three");
  copy("data");
  write(there("data/own"), "the host's");
  change(there("data/c"), "the host's");
  fs::remove_all(here("data/sub"));
  fs::remove(here("data/c"));
  EXPECT_EQ(copy("data").files, 0u);
  EXPECT_THAT(all_in(there("data")), testing::ElementsAre("b", "c", "own"));
}

// The folder of the copied path may be one that others can write to.
TEST_F(Copying, AListOfAnotherUserDecidesNothing) {
  write(here("data/a"), "one");
  write(there("thesis"), "the victim's");
  const fs::path ledger = there(".data.muster-copy");
  const auto victim = look_at(there("thesis"), "../thesis"),
             by_root = look_at(there("thesis"), there("thesis").string());
  write(ledger, to_text(*victim) + '\0' + to_text(*by_root) + '\0');
  EXPECT_EQ(copy("data").files, 1u);
  EXPECT_EQ(read_file(there("thesis")), "the victim's");

  fs::remove(ledger);
  fs::create_symlink(there("thesis"), ledger);
  write(here("data/b"), "two");
  EXPECT_THAT(problem_of("data"), HasSubstr("cannot open " + ledger.string()));
  fs::remove(ledger);
  fs::create_directory(ledger);
  EXPECT_THAT(problem_of("data"), HasSubstr(ledger.string() + ": expected a file of user ID "));
  EXPECT_EQ(read_file(there("thesis")), "the victim's");
}

TEST_F(Copying, AnotherFileIsNotWrittenOver) {
  write(here("data/a"), "one");
  write(here("data/b"), "new");
  write(there("data/b"), "the host's");
  const std::string problem = problem_of("data");
  EXPECT_THAT(problem, HasSubstr(there("data/b").string() + ": expected the file that is here, "));
  EXPECT_THAT(problem, HasSubstr("found another file, of 10 bytes and not 3"));
  change(there("data/b"), "old");  // of the same size
  EXPECT_THAT(problem_of("data"), HasSubstr("found another file of the same 3 bytes"));
  EXPECT_EQ(read_file(there("data/b")), "old");
  fs::remove(there("data/b"));
  fs::create_directory(there("data/b"));
  EXPECT_THAT(problem_of("data"), HasSubstr("found a folder in place of a file"));
  // Nothing was written before that was known.
  EXPECT_THAT(all_in(there("")), testing::ElementsAre("data", "data/b", "work"));
}

TEST_F(Copying, AFileThatWasChangedOnTheHostIsNotWrittenOver) {
  write(here("data/a"), "one");
  copy("data");
  change(there("data/a"), "mine");
  change(here("data/a"), "two", 2'000'000);
  EXPECT_THAT(problem_of("data"), HasSubstr("found another file, of 4 bytes and not 3"));
  fs::remove(there("data/a"));
  write(there("elsewhere"), "one");
  fs::create_symlink("../elsewhere", there("data/a"));
  EXPECT_THAT(problem_of("data"), HasSubstr("found another file of the same 3 bytes"));
}

TEST_F(Copying, TheSameContentIsLeftAsItIs) {
  write(here("data/a"), "one");
  change(there("data/a"), "one");
  EXPECT_EQ(copy("data").files, 0u);
  EXPECT_EQ(look_at(there("data/a"), "")->modified, 1'000'000'000'000'005);
  EXPECT_THAT(all_in(there("")), testing::ElementsAre("data", "data/a", "work"));
}

TEST_F(Copying, AFileThatChangesMeanwhileIsSaidAndNotPutThere) {
  write(here("data/a"), "one");
  const std::vector<Copy> listed = list("data");
  change(here("data/a"), "two");
  EXPECT_THAT(error_of<Unavailable>([&] { copy(listed); }),
              HasSubstr("expected " + here("data/a").string() + " to stay as it is"));
  change(here("data/a"), "2");
  EXPECT_THAT(error_of<Unavailable>([&] { copy(listed); }), HasSubstr("to stay as it is"));
  fs::remove(here("data/a"));
  EXPECT_THAT(error_of<Unavailable>([&] { copy(listed); }),
              HasSubstr("cannot read " + here("data/a").string()));
  EXPECT_THAT(all_in(there("data")), testing::IsEmpty());
}

// A sender that is gone in the middle of a file. Returns what the host has then.
class BrokenOff : public Copying {
 protected:
  void break_off() {
    Pipe to, from;
    CopyWire wire(from.read.get(), to.write.get());
    wire.say("path " + there("data").string());
    const std::vector<Copy> copies = list("data");
    for (const CopyEntry& entry : copies[0].entries) wire.say(to_text(entry));
    for (const char* text : {"end", "go", "file 1"}) wire.say(text);
    wire.send("on");
    to.write.reset();
    CopyWire host(to.read.get(), from.write.get());
    receive_copies(host);
  }
};

TEST_F(BrokenOff, NothingOfTheFileStaysAndTheNextCopyGoesOn) {
  write(here("data/a"), "one");
  break_off();
  EXPECT_THAT(all_in(there("data")), testing::IsEmpty());
  EXPECT_EQ(copy("data").files, 1u);
  EXPECT_EQ(read_file(there("data/a")), "one");
  EXPECT_EQ(copy("data").files, 0u);
}

TEST_F(BrokenOff, WhatAKilledReceiverHasLeftIsRemoved) {
  write(here("data/a"), "one");
  copy("data");
  write(there("data/.muster-copy.part"), "half");
  EXPECT_EQ(copy("data").files, 0u);
  EXPECT_THAT(all_in(there("data")), testing::ElementsAre("a"));
}

TEST_F(BrokenOff, ALedgerWhoseEndWasLostIsReadAsFarAsItGoes) {
  write(here("data/a"), "one");
  copy("data");
  const fs::path ledger = there(".data.muster-copy");
  write(ledger, read_file(ledger) + "file 12 34");
  change(here("data/a"), "two");
  EXPECT_EQ(copy("data").files, 1u);
  change(here("data/a"), "three");
  EXPECT_EQ(copy("data").files, 1u);
  EXPECT_EQ(read_file(there("data/a")), "three");
}

TEST_F(Copying, TwoCopiesOfOnePathGoOneAfterTheOther) {
  write(here("data/a"), "one");
  fs::create_directories(there(""));
  Descriptor ledger(::open(there(".data.muster-copy").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(ledger.get(), LOCK_EX), 0);
  std::optional<Sent> sent;
  std::jthread other([&] { sent = copy("data"); });
  while (!is_there(there("work"))) std::this_thread::yield();
  EXPECT_FALSE(is_there(there("data")));
  write(there("data/a"), "one");
  fs::last_write_time(there("data/a"), fs::last_write_time(here("data/a")));
  ledger.reset();
  other.join();
  EXPECT_EQ(sent->files, 0u);
}

TEST_F(Copying, AFullDiskIsNamed) {
  write(here("data/a"), std::string(200'000, 'x'));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const std::vector<Copy> listed = list("data");
  const rlimit low{100'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const std::string problem = error_of<Unavailable>([&] { copy(listed); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(problem, "expected to write " + there("data/a").string() +
                         ", of 200000 bytes; found: File too large (ulimit -f)");
  EXPECT_THAT(all_in(there("data")), testing::IsEmpty());
}

TEST_F(Copying, WhatIsNoneOfItIsRefused) {
  for (const std::string& text :
       {std::string("hello"), std::string("path data"), std::string("folder data")}) {
    Pipe to, from;
    CopyWire wire(from.read.get(), to.write.get());
    wire.say(text);
    CopyWire host(to.read.get(), from.write.get());
    receive_copies(host);
    wire.skip_to(kCopyGreeting);
    EXPECT_EQ(error_of<Unavailable>([&] { wire.hear(); }),
              "expected an absolute path, found \"" + text + "\"");
  }
}

}  // namespace
}  // namespace muster::local
