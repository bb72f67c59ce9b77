#include "operator/local/copy/copy_receiver.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <unordered_set>

#include "common/system/descriptor.h"
#include "common/system/file.h"
#include "common/system/system_words.h"
#include "operator/local/copy/copy_ledger.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

// A file that is being received. The file is removed unless it is received completely.
class Part {
 public:
  Part(fs::path path, const fs::path& target, const CopyEntry& entry)
      : path_(std::move(path)), target_(target), entry_(entry) {
    file_ = Descriptor(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, entry.mode | S_IWUSR));
    if (!file_) fail(errno);
  }
  ~Part() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) fail(errno);
      if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
    }
  }

  void complete() {
    constexpr int64_t kSecond = 1'000'000'000;
    const timespec modified{entry_.modified / kSecond, entry_.modified % kSecond};
    const std::array times{modified, modified};
    if (::fchmod(file_.get(), entry_.mode) != 0 || ::futimens(file_.get(), times.data()) != 0 ||
        !file_.close_checked() || ::rename(path_.c_str(), target_.c_str()) != 0)
      fail(errno);
    path_.clear();
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw Unavailable("expected to write " + target_.string() + ", of " +
                      std::to_string(entry_.size) + " bytes; found: " + system_words(error));
  }

  fs::path path_;
  const fs::path target_;
  const CopyEntry& entry_;
  Descriptor file_;
};

// Waits until everything written to the file system of `folder` is on its disk.
void sync(const fs::path& folder) {
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file || ::syncfs(file.get()) != 0)
    throw WriteError("cannot write " + folder.string(), errno);
}

// Receives one copied path.
class Receiver {
 public:
  Receiver(CopyWire& wire, fs::path path)
      : wire_(wire), path_(std::move(path)), ledger_(ledger_path(path_)) {}

  void receive() {
    while (const auto text = hear_entry()) entries_.push_back(parse_entry(*text));
    if (entries_.empty()) throw Invalid("expected entries of " + path_.string() + ", found none");
    part_ = part_path(path_, entries_[0].is_folder);
    compare();
    for (const size_t index : unsure_) {
      wire_.say("digest " + std::to_string(index) + " " +
                digest_of(at(entries_[index].name), wire_));
    }
    wire_.say("end");
    if (const std::string go = wire_.hear(); go != "go")
      throw Invalid("expected \"go\", found \"" + go + "\"");
    const bool changes = has_changes();
    if (changes) prepare();
    for (const size_t index : lacking_) wire_.say("lacks " + std::to_string(index));
    wire_.say("end");
    while (const auto index = wire_.hear_one_of("file"))
      receive_file(entries_[parse_index(*index, entries_.size())]);
    if (changes) sync(entries_[0].is_folder ? path_ : path_.parent_path());
    wire_.say("done");
  }

 private:
  std::optional<std::string> hear_entry() {
    std::string text = wire_.hear();
    return text == "end" ? std::nullopt : std::optional(std::move(text));
  }

  fs::path at(const std::string& name) const { return name.empty() ? path_ : path_ / name; }

  // Finds out which files to receive and to remove. Throws Unavailable if a file is in the way.
  void compare() {
    lacking_.clear();
    absent_folders_.clear();
    unsure_.clear();
    for (size_t i = 0; i < entries_.size(); ++i) {
      compare(i);
      wire_.still_works();
    }
    find_stale();
  }

  void compare(size_t i) {
    const CopyEntry& entry = entries_[i];
    const std::optional<CopyEntry> there = look_at(at(entry.name), entry.name);
    if (!there) return (entry.is_folder ? absent_folders_ : lacking_).push_back(i);
    if (entry.is_folder != there->is_folder) {
      throw Unavailable(conflict(at(entry.name), there->is_folder ? "a folder in place of a file"
                                                                  : "a file in place of a folder"));
    }
    if (is_same(entry, *there)) return;
    if (was_copied(entry.name)) return lacking_.push_back(i);
    if (entry.size != there->size) {
      throw Unavailable(conflict(at(entry.name), "another file, of " + std::to_string(there->size) +
                                                     " bytes and not " +
                                                     std::to_string(entry.size)));
    }
    unsure_.push_back(i);
  }

  bool was_copied(const std::string& name) const {
    struct stat status {};
    if (::lstat(at(name).c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    const std::optional<CopyEntry> there = look_at(at(name), name);
    return there && ledger_.has(*there);
  }

  void find_stale() {
    stale_.clear();
    const std::set<std::string> names = ledger_.names();
    if (names.empty()) return;
    std::unordered_set<std::string_view> sent;
    for (const CopyEntry& entry : entries_) sent.insert(entry.name);
    for (const std::string& name : names)
      if (!sent.contains(name) && was_copied(name)) stale_.push_back(name);
  }

  bool has_changes() const {
    return !lacking_.empty() || !absent_folders_.empty() || !stale_.empty() || is_there(part_);
  }

  void prepare() {
    const std::vector<size_t> agreed = unsure_;
    ledger_.lock(wire_);
    compare();
    for (const size_t index : unsure_) {
      if (!std::ranges::binary_search(agreed, index))
        throw Unavailable(conflict(at(entries_[index].name), "a file that has just come there"));
    }
    ::unlink(part_.c_str());
    for (const size_t index : absent_folders_) muster::create_directories(at(entries_[index].name));
    remove_stale();
  }

  // Removes stale files, and folders that are empty afterwards, except the sent folders.
  void remove_stale() {
    std::unordered_set<std::string> sent = {""};
    for (const CopyEntry& entry : entries_)
      if (entry.is_folder) sent.insert(entry.name);
    for (const std::string& name : stale_) {
      ::unlink(at(name).c_str());
      fs::path folder = fs::path(name).parent_path();
      while (!sent.contains(folder) && ::rmdir(at(folder).c_str()) == 0)
        folder = folder.parent_path();
    }
  }

  void receive_file(const CopyEntry& entry) {
    Part part(part_, at(entry.name), entry);
    wire_.receive(entry.size, [&](std::string_view bytes) { part.write(bytes); });
    if (const std::string end = wire_.hear(); end != "whole")
      throw Invalid("expected the end of " + at(entry.name).string() + ", found \"" + end + "\"");
    // The comparison may be hours old by now.
    if (is_there(at(entry.name)) && !was_copied(entry.name))
      throw Unavailable(conflict(at(entry.name), "a file that has come there meanwhile"));
    ledger_.add(entry);
    part.complete();
  }

  CopyWire& wire_;
  const fs::path path_;
  fs::path part_;
  CopyLedger ledger_;
  std::vector<CopyEntry> entries_;
  std::vector<size_t> lacking_, absent_folders_, unsure_;  // indexes of entries
  std::vector<std::string> stale_;                         // names of files that are no longer sent
};

}  // namespace

void receive_copies(CopyWire& wire) {
  try {
    wire.send(kCopyGreeting);
    while (true) {
      const std::string text = wire.hear(), folder = "folder /", path = "path /";
      if (text.starts_with(folder))
        muster::create_directories(text.substr(folder.size() - 1));
      else if (text.starts_with(path))
        Receiver(wire, text.substr(path.size() - 1)).receive();
      else
        throw Invalid("expected an absolute path, found \"" + text + "\"");
    }
  } catch (const BrokenWire&) {
    return;  // the wire has ended
  } catch (const std::exception& error) {
    try {
      wire.say(std::string("problem ") + error.what());
    } catch (const Unavailable&) {
      return;  // the other end is gone
    }
  }
}

}  // namespace muster::local
