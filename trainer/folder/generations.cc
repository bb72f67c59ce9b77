#include "trainer/folder/generations.h"

#include <sys/stat.h>

#include <cerrno>

#include "common/error.h"
#include "common/system/file.h"
#include "common/text/whole_number.h"
#include "trainer/folder/owner.h"

namespace muster::folder {

namespace fs = std::filesystem;

namespace {

fs::path folder_of(const fs::path& storage, uint64_t generation) {
  return storage / "generations" / std::to_string(generation);
}

}  // namespace

uint64_t newest_generation(const fs::path& storage) {
  uint64_t newest = 0;
  for (const std::string& name : names_in(storage / "generations"))
    newest = std::max(newest, whole_number<uint64_t>(name, 0, kLastGeneration).value_or(0));
  return newest;
}

uint64_t open_generation(const fs::path& storage, uint64_t at_least) {
  if (at_least >= kLastGeneration)
    throw Unavailable("expected a generation below " + std::to_string(kLastGeneration) +
                      " to open the next above, found " + std::to_string(at_least));
  const fs::path folder = storage / "generations";
  muster::create_directories(folder);
  uint64_t next = std::max(at_least, newest_generation(storage)) + 1;
  for (;; ++next) {
    const fs::path path = folder_of(storage, next);
    if (mkdir(path.c_str(), 0777) == 0) break;
    if (errno != EEXIST) throw WriteError(path.string() + ": cannot open a generation", errno);
  }
  sync_directory(folder);
  return next;
}

void require_newest(const fs::path& storage, uint64_t generation, const std::string& job_uid) {
  require_no_other_owner(storage, job_uid);
  const uint64_t newest = newest_generation(storage);
  if (newest > generation)
    throw Unavailable("generation " + std::to_string(generation) +
                      " of the group was superseded by generation " + std::to_string(newest) +
                      ": nothing is published");
}

}  // namespace muster::folder
