#include "trainer/checkpoint/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "common/digest.h"
#include "common/error.h"
#include "common/input_file.h"
#include "common/log.h"

namespace muster::checkpoint {

namespace fs = std::filesystem;

namespace {
constexpr uint64_t kMostManifestBytes = 16 << 20;
}  // namespace

Store::Store(fs::path directory, int keep)
    : directory_(std::move(directory)), keep_(std::max(keep, 1)) {}

std::vector<FolderName> Store::list() const {
  std::vector<FolderName> names;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    if (const auto name = FolderName::parse(it->path().filename().string())) names.push_back(*name);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Unavailable(fmt::format("cannot list {}: {}", directory_.string(), error.message()));
  }
  std::sort(names.begin(), names.end(), [](const FolderName& a, const FolderName& b) {
    return std::tie(a.generation, a.step) > std::tie(b.generation, b.step);
  });
  return names;
}

Store::Search Store::search() const {
  return search([](const FolderName&) { return true; });
}

std::optional<Store::Found> Store::of_step(uint64_t step) const {
  Search result = search([&](const FolderName& name) { return name.step == step; });
  tell(result.damaged);
  return std::move(result.newest);
}

Store::Search Store::search(const std::function<bool(const FolderName&)>& wanted) const {
  Search result;
  for (const FolderName& name : list()) {
    if (!wanted(name)) continue;
    Found found{directory_ / name.text(), {}};
    try {
      found.manifest = read_manifest(found.directory);
      verify(found);
      result.newest = std::move(found);
      break;
    } catch (const Forbidden& error) {
      throw Unavailable(error.what());
    } catch (const Invalid& error) {
      std::error_code unknown;
      const bool there = fs::exists(found.directory, unknown);
      if (unknown) throw Unavailable(error.what());
      if (!there) continue;  // pruned meanwhile
      result.damaged.push_back({found.directory, error.what()});
    }
  }
  const MutexLock lock(damaged_mutex_);
  for (const Damaged& damaged : result.damaged) damaged_.insert(damaged.directory);
  return result;
}

const std::optional<Store::Found>& Store::Search::or_refuse() const {
  if (newest || damaged.empty()) return newest;
  std::vector<std::string> reasons;
  std::vector<std::string> folders;
  for (const Damaged& one : damaged) {
    reasons.push_back(one.reason);
    folders.push_back(one.directory.filename().string());
  }
  throw Invalid(fmt::format(
      "{}: expected a whole checkpoint to go on from, found only damaged ones: {}. Restore what is "
      "damaged; or, to begin again at step 0, move {} away or take another directory",
      damaged.front().directory.parent_path().string(), fmt::join(reasons, "; "),
      fmt::join(folders, ", ")));
}

std::optional<Store::Found> Store::newest() const {
  Search result = search();
  tell(result.damaged);
  return std::move(result.newest);
}

std::optional<Store::Found> Store::to_resume() const {
  Search result = search();
  result.or_refuse();
  tell(result.damaged);
  return std::move(result.newest);
}

void Store::tell(const std::vector<Damaged>& damaged) const {
  for (const Damaged& one : damaged) {
    {
      const MutexLock lock(damaged_mutex_);
      if (!told_.insert(one.directory).second) continue;
    }
    log::warning(
        fmt::format("checkpoint {} is passed over: {}", one.directory.string(), one.reason));
  }
}

Manifest Store::read_manifest(const fs::path& directory) {
  const fs::path path = directory / "manifest.json";
  Manifest manifest = parse_manifest(InputFile(path).text(kMostManifestBytes), path.string());
  const FolderName own{manifest.position.step, manifest.generation};
  const auto name = FolderName::parse(directory.filename().string());
  if (name && *name != own) {
    throw Invalid(fmt::format("{}: expected the manifest of {}, found that of {}", path.string(),
                              name->text(), own.text()));
  }
  return manifest;
}

void Store::verify(const Found& found) {
  for (const FileEntry& entry : found.manifest.files) {
    const InputFile file(found.directory / entry.name);
    if (file.size() != entry.bytes) {
      throw Invalid(fmt::format("{}: expected {} bytes, found {}", file.path().string(),
                                entry.bytes, file.size()));
    }
    const uint32_t crc = file.crc32c();
    if (crc != entry.crc32c) {
      throw Invalid(fmt::format("{}: damaged: expected crc32c {:08x}, found {:08x}",
                                file.path().string(), entry.crc32c, crc));
    }
  }
}

}  // namespace muster::checkpoint
