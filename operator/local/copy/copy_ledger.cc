#include "operator/local/copy/copy_ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "common/file.h"

namespace muster::local {

namespace {

constexpr auto kLockAgainAfter = std::chrono::milliseconds(100);

}  // namespace

CopyLedger::CopyLedger(std::filesystem::path path) : path_(std::move(path)) {
  if (is_there(path_)) read();
}

void CopyLedger::read() {
  const std::string text = read_file(path_);
  entries_.clear();
  // A last entry without an end was being written when the host failed.
  for (size_t begin = 0, end; (end = text.find('\0', begin)) != std::string::npos;
       begin = end + 1) {
    if (end == begin) continue;
    try {
      CopyEntry entry = parse_entry(text.substr(begin, end - begin));
      entries_.emplace(entry.name, entry);
    } catch (const Invalid&) {
      continue;  // the rest of such an entry
    }
  }
}

void CopyLedger::lock(CopyWire& wire) {
  muster::create_directories(path_.parent_path());
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) throw WriteError("cannot write " + path_.string(), errno);
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      throw WriteError("cannot lock " + path_.string(), errno);
    wire.still_works();
    std::this_thread::sleep_for(kLockAgainAfter);
  }
  read();
}

void CopyLedger::add(const std::vector<const CopyEntry*>& entries) {
  std::string text(1, '\0');  // ends what a failed host has left
  for (const CopyEntry* entry : entries) {
    text += to_text(*entry) + '\0';
    entries_.emplace(entry->name, *entry);
  }
  for (std::string_view left = text; !left.empty();) {
    const ssize_t written = ::write(file_.get(), left.data(), left.size());
    if (written < 0 && errno != EINTR) throw WriteError("cannot write " + path_.string(), errno);
    if (written > 0) left.remove_prefix(static_cast<size_t>(written));
  }
}

void CopyLedger::sync() const {
  if (::syncfs(file_.get()) != 0) throw WriteError("cannot write " + path_.string(), errno);
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
