#include "trainer/checkpoint/store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <span>
#include <tuple>

#include "common/digest.h"
#include "common/error.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "common/system/input_file.h"
#include "common/threads/watched_work.h"
#include "trainer/checkpoint/store/contents.h"
#include "trainer/checkpoint/store/temporary_folder.h"
#include "trainer/checkpoint/store/unique_name.h"

namespace muster::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMostManifestBytes = 16 << 20;
constexpr const char* kManifest = "manifest.json";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kBest = "best";

[[noreturn]] void refuse_second(const fs::path& published) {
  throw Invalid(fmt::format("{} was published before: a step is published once in a generation",
                            published.string()));
}

void rename_folder(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno == ENOTEMPTY || errno == EEXIST) refuse_second(to);
  throw WriteError(fmt::format("cannot publish {}", to.string()), errno);
}

std::string best_name(const fs::path& directory) {
  try {
    std::string name = read_file(directory / kBest, kLongestText);
    if (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
  } catch (const std::runtime_error&) {
    return {};  // no checkpoint is marked
  }
}

std::set<uint64_t> steps_of_best(const Evaluations& evaluations) {
  std::set<uint64_t> steps;
  for (const auto& best : {evaluations.best, evaluations.kept})
    if (best) steps.insert(best->step);
  return steps;
}

void require_checksums(const Store::Found& found) {
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

}  // namespace

Store::Store(fs::path directory, int keep)
    : directory_(std::move(directory)), keep_(std::max(keep, 1)) {}

std::vector<FolderName> Store::list() const {
  std::vector<FolderName> names;
  for (const std::string& text : names_in(directory_))
    if (const auto name = FolderName::parse(text)) names.push_back(*name);
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
  const WatchedWork work(WatchedWork::Kind::storage, "searching", directory_.native());
  Search result;
  for (const FolderName& name : list()) {
    if (!wanted(name)) continue;
    const fs::path folder = directory_ / name.text();
    try {
      result.newest = read_whole(folder);
      break;
    } catch (const Forbidden& error) {
      throw Unavailable(error.what());
    } catch (const Invalid& error) {
      std::error_code unknown;
      const bool there = fs::exists(folder, unknown);
      if (unknown) throw Unavailable(error.what());
      if (!there) continue;  // pruned meanwhile
      result.damaged.push_back({folder, error.what()});
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

Store::Found Store::read(const fs::path& directory) {
  const fs::path path = directory / kManifest;
  Found found{directory, parse_manifest(InputFile(path).text(kMostManifestBytes), path.string())};
  const FolderName own{found.manifest.position.step, found.manifest.generation};
  const auto name = FolderName::parse(directory.filename().string());
  if (name && *name != own) {
    throw Invalid(fmt::format("{}: expected the manifest of {}, found that of {}", path.string(),
                              name->text(), own.text()));
  }
  return found;
}

Store::Found Store::read_of_another_host(const fs::path& directory) {
  look_anew(directory);
  return read(directory);
}

Store::Found Store::read_whole(const fs::path& directory) {
  Found found = read(directory);
  require_checksums(found);
  return found;
}

fs::path Store::begin(uint64_t step) {
  const WatchedWork work(WatchedWork::Kind::storage, "making a folder in", directory_.native());
  muster::create_directories(directory_);
  remove_leftovers(std::chrono::hours(1));
  const fs::path path = directory_ / fmt::format("ckpt-{}.tmp-{}", step, unique_name());
  muster::create_directories(path);
  return path;
}

fs::path Store::publish(const fs::path& temporary, const Manifest& manifest) {
  const fs::path target =
      directory_ / FolderName{manifest.position.step, manifest.generation}.text();
  const WatchedWork work(WatchedWork::Kind::storage, "publishing", target.native());
  if (published(manifest.position.step, manifest.generation)) refuse_second(target);
  Contents contents = read_contents(temporary, manifest);
  Manifest complete = manifest;
  complete.slices = std::move(contents.slices);
  const std::string index = contents.index.dump(2) + "\n";
  write_file_atomically(temporary / kIndex, index);
  complete.files.push_back({kIndex, index.size(), crc32c(std::as_bytes(std::span(index)))});
  write_file_atomically(temporary / kManifest, to_text(complete));
  sync_directory(temporary);
  rename_folder(temporary, target);
  sync_directory(directory_);
  try {
    prune();
    write_state();
  } catch (const std::runtime_error& error) {
    log::warning(fmt::format("{} is published, but tidying up after it failed: {}", target.string(),
                             error.what()));
  }
  return target;
}

void Store::discard(const fs::path& temporary) noexcept {
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
}

bool Store::published(uint64_t step, uint64_t generation) const {
  std::error_code ignored;
  return fs::exists(directory_ / FolderName{step, generation}.text(), ignored);
}

// Writes TensorFlow's CheckpointState in protobuf's text format; paths are relative to the file.
void Store::write_state() const {
  const std::vector<FolderName> names = list();
  if (names.empty()) return;
  std::string text = fmt::format("model_checkpoint_path: \"{}\"\n", names.front().text());
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    text += fmt::format("all_model_checkpoint_paths: \"{}\"\n", name->text());
  }
  write_file_atomically(directory_ / "checkpoint", text);
}

void Store::prune() const {
  Manifest newest;
  std::set<uint64_t> evaluated;  // steps of the best checkpoints by its evaluations
  int newer = 0;
  for (const FolderName& name : list()) {
    const fs::path checkpoint = directory_ / name.text();
    if (is_damaged(checkpoint)) continue;
    const Manifest manifest = read(checkpoint).manifest;
    if (newer == 0) {
      newest = manifest;
      evaluated = steps_of_best(newest.position.evaluations);
    }
    const bool is_best = evaluated.erase(name.step) > 0;
    if (newer++ < keep_ || is_best || manifest.is_final()) continue;
    // The lease is checked first: an evaluator gives it back after it has written its result and
    // marked the best checkpoint.
    if (CheckpointLease::any_active(checkpoint) || may_be_best(name, newest)) continue;
    if (const std::error_code error = remove_checkpoint(checkpoint)) tell_kept(checkpoint, error);
  }
}

void Store::tell_kept(const fs::path& checkpoint, const std::error_code& error) const {
  const MutexLock lock(damaged_mutex_);
  if (!told_.insert(checkpoint).second) return;
  log::warning(
      fmt::format("the checkpoint {} cannot be removed, and its room is not given back: {}",
                  checkpoint.string(), error.message()));
}

bool Store::may_be_best(const FolderName& name, const Manifest& newest) const {
  if (name.text() == best_name(directory_)) return true;
  if (evaluations_.empty() || newest.is_final()) return false;
  if (name.step <= newest.position.evaluations.step) return false;
  look_anew(evaluations_);
  std::error_code error;
  return fs::exists(evaluations_ / fmt::format("{}.json", name.step), error) || error;
}

void Store::leave_evaluated(fs::path evaluations) {
  evaluations_ = std::move(evaluations);
}

// Checks only what is cheap: the manifest and the sizes. A search compares the checksums.
bool Store::is_damaged(const fs::path& checkpoint) const {
  {
    const MutexLock lock(damaged_mutex_);
    if (damaged_.contains(checkpoint)) return true;
  }
  try {
    for (const FileEntry& entry : read(checkpoint).manifest.files) {
      std::error_code error;
      if (fs::file_size(checkpoint / entry.name, error) != entry.bytes || error) return true;
    }
    return false;
  } catch (const Invalid&) {
    return true;
  }
}

void Store::remove_leftovers(std::chrono::seconds age) const noexcept {
  try {
    for (const TemporaryFolder& temporary : temporary_folders(directory_))
      if (std::chrono::system_clock::now() - temporary.begun >= age) temporary.remove();
  } catch (const Unavailable&) {
    return;  // try again another time
  }
}

void Store::fence() const {
  for (const TemporaryFolder& temporary : temporary_folders(directory_)) {
    if (temporary.pruned) continue;
    const std::error_code error = temporary.remove();
    if (error && error != std::errc::no_such_file_or_directory)
      throw Unavailable(fmt::format("cannot end what was begun in {}: {}", temporary.path.string(),
                                    error.message()));
  }
}

void Store::mark_best(const Found& found) {
  write_file_atomically(directory_ / kBest, found.directory.filename().string() + "\n");
}

std::optional<uint64_t> Store::step_of_best() const {
  const std::string best = best_name(directory_);
  for (const FolderName& name : list())
    if (name.text() == best) return name.step;
  return std::nullopt;
}

std::unique_ptr<CheckpointLease> Store::lease(const Found& found, const std::string& reader) const {
  const auto is_there = [&] {
    std::error_code ignored;
    return fs::exists(found.directory / kManifest, ignored);
  };
  try {
    auto lease = std::make_unique<CheckpointLease>(found.directory, reader);
    look_anew(directory_);  // another host may have removed the folder before it saw the lease
    if (is_there()) return lease;
  } catch (const WriteError&) {
    if (is_there()) throw;
  }
  return nullptr;
}

}  // namespace muster::checkpoint
