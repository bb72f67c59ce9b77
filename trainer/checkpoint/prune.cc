#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "common/error.h"
#include "common/file.h"
#include "common/mutex.h"
#include "trainer/checkpoint/store.h"
#include "trainer/checkpoint/unique_name.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;
using std::chrono::system_clock;

constexpr std::chrono::seconds kTerm = std::chrono::minutes(10);

std::string best_name(const fs::path& directory) {
  try {
    std::string name = read_file(directory / "best");
    if (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
  } catch (const std::runtime_error&) {
    return {};  // none was marked
  }
}

// Renames the folder first, so that no reader sees half a checkpoint, and renames it back if a
// reader has got a lease before that.
void remove_checkpoint(const fs::path& checkpoint) {
  fs::path hidden = checkpoint;
  hidden += ".tmp-" + unique_name();
  std::error_code error;
  fs::rename(checkpoint, hidden, error);
  if (error) return;
  if (Store::Lease::any_active(hidden)) {
    fs::rename(hidden, checkpoint, error);
    return;
  }
  fs::remove_all(hidden, error);
}

std::set<uint64_t> steps_of_best(const Evaluations& evaluations) {
  std::set<uint64_t> steps;
  for (const auto& best : {evaluations.best, evaluations.kept})
    if (best) steps.insert(best->step);
  return steps;
}

struct Temporary {
  fs::path path;
  system_clock::time_point begun;
  bool pruned = false;  // a published one on its way out
};

// Throws Unavailable where the folder cannot be listed.
std::vector<Temporary> temporaries(const fs::path& directory) {
  constexpr std::string_view kMark = ".tmp-";
  std::vector<Temporary> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const size_t mark = name.find(kMark);
    if (!name.starts_with("ckpt-") || mark == std::string::npos) continue;
    const auto begun = time_of(std::string_view(name).substr(mark + kMark.size()));
    if (!begun) continue;
    found.push_back({it->path(), *begun, FolderName::parse(name.substr(0, mark)).has_value()});
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw Unavailable(fmt::format("cannot list {}: {}", directory.string(), error.message()));
  return found;
}

// Renames the folder first, so that a writer that still uses it cannot publish half of it. Returns
// the error of the renaming.
std::error_code remove_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  fs::path doomed = path;
  doomed.replace_filename(name.substr(0, name.find('.')) + ".tmp-" + unique_name());
  std::error_code error;
  fs::rename(path, doomed, error);
  std::error_code ignored;
  if (!error) fs::remove_all(doomed, ignored);
  return error;
}

std::string file_name_part(const std::string& reader) {
  std::string out = reader;
  for (char& c : out) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  return out.substr(0, 64);
}

int64_t seconds_of(system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

// Checks only what is cheap: the manifest and the sizes. A search compares the checksums.
bool Store::is_damaged(const fs::path& checkpoint) const {
  {
    const MutexLock lock(damaged_mutex_);
    if (damaged_.contains(checkpoint)) return true;
  }
  try {
    for (const FileEntry& entry : read_manifest(checkpoint).files) {
      std::error_code error;
      if (fs::file_size(checkpoint / entry.name, error) != entry.bytes || error) return true;
    }
    return false;
  } catch (const Invalid&) {
    return true;
  }
}

void Store::prune() const {
  const std::string best = best_name(directory_);
  std::set<uint64_t> evaluated;  // steps of the best by evaluations within the training
  int newer = 0;
  for (const FolderName& name : list()) {
    const fs::path checkpoint = directory_ / name.text();
    if (is_damaged(checkpoint)) continue;
    const Manifest manifest = read_manifest(checkpoint);
    if (newer == 0) evaluated = steps_of_best(manifest.position.evaluations);
    const bool is_best = evaluated.erase(name.step) > 0 || name.text() == best;
    if (newer++ < keep_ || is_best || manifest.final) continue;
    if (!Lease::any_active(checkpoint)) remove_checkpoint(checkpoint);
  }
}

void Store::remove_leftovers(std::chrono::seconds age) const noexcept {
  try {
    for (const Temporary& temporary : temporaries(directory_))
      if (system_clock::now() - temporary.begun >= age) remove_temporary(temporary.path);
  } catch (const Unavailable&) {
    return;  // another time
  }
}

void Store::fence() const {
  for (const Temporary& temporary : temporaries(directory_)) {
    if (temporary.pruned) continue;
    const std::error_code error = remove_temporary(temporary.path);
    if (error && error != std::errc::no_such_file_or_directory)
      throw Unavailable(fmt::format("cannot end what was begun in {}: {}", temporary.path.string(),
                                    error.message()));
  }
}

void Store::mark_best(const Found& found) {
  write_file_atomically(directory_ / "best", found.directory.filename().string() + "\n");
}

std::optional<uint64_t> Store::step_of_best() const {
  const std::string best = best_name(directory_);
  for (const FolderName& name : list())
    if (name.text() == best) return name.step;
  return std::nullopt;
}

std::unique_ptr<Store::Lease> Store::lease(const Found& found, const std::string& reader) const {
  const auto is_there = [&] {
    std::error_code ignored;
    return fs::exists(found.directory / "manifest.json", ignored);
  };
  const std::string name = fmt::format("lease-{}-{}", file_name_part(reader), unique_name());
  try {
    auto lease = std::make_unique<Lease>(found.directory / name, reader);
    if (is_there()) return lease;
  } catch (const WriteError&) {
    if (is_there()) throw;
  }
  return nullptr;
}

Store::Lease::Lease(fs::path path, std::string reader)
    : path_(std::move(path)), reader_(std::move(reader)) {
  write();
}

Store::Lease::~Lease() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

void Store::Lease::renew() {
  if (std::chrono::steady_clock::now() - written_ > kTerm / 4) write();
}

void Store::Lease::write() {
  written_ = std::chrono::steady_clock::now();
  write_file_atomically(path_,
                        fmt::format("{} {}\n", seconds_of(system_clock::now() + kTerm), reader_));
}

bool Store::Lease::any_active(const fs::path& checkpoint) {
  const int64_t now = seconds_of(system_clock::now());
  std::error_code error;
  for (fs::directory_iterator it(checkpoint, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->path().filename().string().starts_with("lease-")) continue;
    try {
      const std::string text = read_file(it->path());
      int64_t expiry = 0;
      const auto result = std::from_chars(text.data(), text.data() + text.size(), expiry);
      if (result.ec == std::errc() && expiry > now) return true;
    } catch (const std::runtime_error&) {
      continue;  // given back meanwhile
    }
  }
  return false;
}

}  // namespace muster::checkpoint
