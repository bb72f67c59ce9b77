#include "operator/local/copy/copy_list.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/system_words.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

constexpr const char* kCompiled = "__pycache__";
constexpr const char* kLedger = ".muster-copy";
constexpr const char* kPart = ".muster-copy.part";
constexpr int64_t kSecond = 1'000'000'000;

using Identity = std::pair<dev_t, ino_t>;

bool is_ours(const std::string& name) {
  return name.starts_with('.') && (name.ends_with(kLedger) || name.ends_with(kPart));
}

class Lister {
 public:
  Lister(std::string where, const fs::path& but) : where_(std::move(where)) {
    struct stat status {};
    if (::stat(but.c_str(), &status) == 0) but_ = {status.st_dev, status.st_ino};
  }

  Copy list(const fs::path& path) {
    copy_ = {path, path, {}};
    add("");
    return std::move(copy_);
  }

 private:
  void add(const std::string& name) {
    const fs::path path = name.empty() ? copy_.source : copy_.source / name;
    const std::optional<CopyEntry> entry = look(path, name);
    if (!entry) fail("found none at " + path.string());
    copy_.entries.push_back(*entry);
    if (entry->is_folder) add_content(path, name);
  }

  std::optional<CopyEntry> look(const fs::path& path, const std::string& name) const {
    try {
      return look_at(path, name);
    } catch (const std::runtime_error& error) {
      throw Invalid(where_ + ": " + error.what(), kBadInput);
    }
  }

  void add_content(const fs::path& folder, const std::string& name) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) fail("found none at " + folder.string());
    const Identity self{status.st_dev, status.st_ino};
    if (std::ranges::find(around_, self) != around_.end())
      fail("found " + folder.string() + ", a link to a folder that it lies in");
    around_.push_back(self);
    for (const std::string& child : names_in(folder)) {
      const fs::path path = folder / child;
      const bool is_but = ::stat(path.c_str(), &status) == 0 && but_ &&
                          *but_ == Identity{status.st_dev, status.st_ino};
      if (!is_but && child != kCompiled && !is_ours(child))
        add(name.empty() ? child : name + "/" + child);
    }
    around_.pop_back();
  }

  std::vector<std::string> names_in(const fs::path& folder) const {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      names.push_back(at->path().filename().string());
    if (error) fail("found that " + folder.string() + " cannot be read: " + error.message());
    std::ranges::sort(names);
    return names;
  }

  [[noreturn]] void fail(const std::string& found) const {
    throw Invalid(where_ + ": expected a file or folder, " + found, kBadInput);
  }

  const std::string where_;
  std::optional<Identity> but_;
  Copy copy_;
  std::vector<Identity> around_;  // the folders that contain the present one
};

}  // namespace

std::vector<Copy> list_copies(const std::vector<CopyPath>& paths, const fs::path& below,
                              const fs::path& but) {
  std::vector<Copy> copies;
  for (const auto& [path, where] : paths) {
    fs::path whole = (below / path).lexically_normal();
    if (!whole.has_filename()) whole = whole.parent_path();  // the path ended in a slash
    copies.push_back(Lister(where, but).list(whole));
  }
  return copies;
}

std::optional<CopyEntry> look_at(const fs::path& path, const std::string& name) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT)
      throw Unavailable("cannot look at " + path.string() + ": " + system_words(errno));
    if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
    throw Invalid("expected a file or folder, found " + path.string() +
                  ", a link that leads to nothing");
  }
  if (S_ISDIR(status.st_mode)) return CopyEntry{.name = name, .is_folder = true};
  if (!S_ISREG(status.st_mode))
    throw Invalid("expected a file or folder, found " + path.string() + ", which is neither");
  return CopyEntry{
      .name = name,
      .is_folder = false,
      .size = static_cast<uint64_t>(status.st_size),
      .modified = status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec,
      .mode = status.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO),
  };
}

bool is_same(const CopyEntry& here, const CopyEntry& there) {
  if (here.is_folder || there.is_folder) return here.is_folder == there.is_folder;
  const bool same_time =
      here.modified == there.modified ||
      (there.modified % kSecond == 0 && here.modified / kSecond == there.modified / kSecond);
  return here.size == there.size && same_time && (here.mode & S_IXUSR) == (there.mode & S_IXUSR);
}

fs::path ledger_path(const fs::path& path) {
  return path.parent_path() / ("." + path.filename().string() + kLedger);
}

fs::path part_path(const fs::path& path, bool is_folder) {
  // Inside the folder, because the folder may be a separate file system.
  if (is_folder) return path / kPart;
  return path.parent_path() / ("." + path.filename().string() + kPart);
}

}  // namespace muster::local
