#include "trainer/checkpoint/store/temporary_folder.h"

#include <string>
#include <string_view>

#include "common/system/file.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/checkpoint/store/checkpoint_lease.h"
#include "trainer/checkpoint/store/unique_name.h"

namespace muster::checkpoint {

namespace fs = std::filesystem;

std::error_code TemporaryFolder::remove() const {
  const std::string name = path.filename().string();
  fs::path doomed = path;
  doomed.replace_filename(name.substr(0, name.find('.')) + ".tmp-" + unique_name());
  std::error_code error;
  fs::rename(path, doomed, error);
  std::error_code ignored;
  if (!error) fs::remove_all(doomed, ignored);
  return error;
}

std::vector<TemporaryFolder> temporary_folders(const fs::path& directory) {
  constexpr std::string_view kMark = ".tmp-";
  std::vector<TemporaryFolder> found;
  for (const std::string& name : names_in(directory)) {
    const size_t mark = name.find(kMark);
    if (!name.starts_with("ckpt-") || mark == std::string::npos) continue;
    const auto begun = time_of(std::string_view(name).substr(mark + kMark.size()));
    if (!begun) continue;
    found.push_back(
        {directory / name, *begun, FolderName::parse(name.substr(0, mark)).has_value()});
  }
  return found;
}

std::error_code remove_checkpoint(const fs::path& checkpoint) {
  fs::path hidden = checkpoint;
  hidden += ".tmp-" + unique_name();
  std::error_code error;
  fs::rename(checkpoint, hidden, error);
  if (error == std::errc::no_such_file_or_directory) return {};  // another process was faster
  if (error) return error;
  if (CheckpointLease::any_active(hidden)) {
    fs::rename(hidden, checkpoint, error);
    return {};
  }
  fs::remove_all(hidden, error);
  return error;
}

}  // namespace muster::checkpoint
