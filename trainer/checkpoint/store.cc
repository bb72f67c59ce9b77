#include "trainer/checkpoint/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "trainer/checkpoint/durable_file.h"

namespace muster::checkpoint {

namespace fs = std::filesystem;

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

std::optional<Store::Found> Store::newest() const {
  return newest_where(0);
}

std::optional<Store::Found> Store::newest_after(uint64_t step) const {
  if (step == UINT64_MAX) return std::nullopt;
  return newest_where(step + 1);
}

std::optional<Store::Found> Store::newest_where(uint64_t least_step) const {
  for (const FolderName& name : list()) {
    if (name.step < least_step) continue;
    Found found{directory_ / name.text(), {}};
    try {
      found.manifest = read_manifest(found.directory);
      verify(found);
      return found;
    } catch (const std::runtime_error& error) {
      warn_once(found.directory.string(), error.what());
    }
  }
  return std::nullopt;
}

void Store::warn_once(const std::string& folder, const std::string& reason) const {
  {
    const std::lock_guard lock(warned_mutex_);
    if (!warned_.insert(folder).second) return;
  }
  log::warning(fmt::format("checkpoint {} is passed over: {}", folder, reason));
}

Manifest Store::read_manifest(const fs::path& directory) {
  const fs::path path = directory / "manifest.json";
  Manifest manifest = parse_manifest(read_file(path), path.string());
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
