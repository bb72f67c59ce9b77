#include "operator/local/copy/copy_ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "common/error.h"
#include "common/system/file.h"
#include "common/system/system_words.h"

namespace muster::local {

namespace {

constexpr auto kLockAgainAfter = std::chrono::milliseconds(100);

bool stays_inside(const std::filesystem::path& name) {
  return name.is_relative() && std::ranges::find(name, "..") == name.end();
}

}  // namespace

CopyLedger::CopyLedger(std::filesystem::path path) : path_(std::move(path)) {
  if (is_there(path_)) read(open(O_RDONLY));
}

// Opens the file with care, because other users may be able to write to the folder.
Descriptor CopyLedger::open(int flags) const {
  Descriptor file(::open(path_.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!file) throw Unavailable("cannot open " + path_.string() + ": " + system_words(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    throw Unavailable(path_.string() + ": expected a file of user ID " +
                      std::to_string(::geteuid()) + ", found another user's, or no file");
  return file;
}

void CopyLedger::read(const Descriptor& file) {
  std::string text;
  std::array<char, size_t{1} << 16> bytes;
  while (true) {
    const ssize_t got =
        ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(text.size()));
    if (got < 0 && errno != EINTR)
      throw Unavailable("cannot read " + path_.string() + ": " + system_words(errno));
    if (got == 0) break;
    if (got > 0) text.append(bytes.data(), static_cast<size_t>(got));
  }
  entries_.clear();
  // If the last entry has no end, the host failed while the entry was being written.
  for (size_t begin = 0, end; (end = text.find('\0', begin)) != std::string::npos;
       begin = end + 1) {
    if (end == begin) continue;
    try {
      CopyEntry entry = parse_entry(text.substr(begin, end - begin));
      if (stays_inside(entry.name)) entries_.emplace(entry.name, entry);
    } catch (const Invalid&) {
      continue;  // the rest of an unfinished entry
    }
  }
}

void CopyLedger::lock(CopyWire& wire) {
  muster::create_directories(path_.parent_path());
  file_ = open(O_RDWR | O_CREAT | O_APPEND);
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      throw WriteError("cannot lock " + path_.string(), errno);
    wire.still_works();
    std::this_thread::sleep_for(kLockAgainAfter);
  }
  read(file_);
}

void CopyLedger::add(const CopyEntry& entry) {
  std::string text(1, '\0');  // ends an unfinished entry
  text += to_text(entry) + '\0';
  entries_.emplace(entry.name, entry);
  for (std::string_view left = text; !left.empty();) {
    const ssize_t written = ::write(file_.get(), left.data(), left.size());
    if (written < 0 && errno != EINTR) throw WriteError("cannot write " + path_.string(), errno);
    if (written > 0) left.remove_prefix(static_cast<size_t>(written));
  }
}

bool CopyLedger::has(const CopyEntry& there) const {
  const auto [begin, end] = entries_.equal_range(there.name);
  return std::any_of(begin, end, [&](const auto& entry) { return is_same(entry.second, there); });
}

std::set<std::string> CopyLedger::names() const {
  std::set<std::string> names;
  for (const auto& [name, entry] : entries_) names.insert(name);
  return names;
}

}  // namespace muster::local
