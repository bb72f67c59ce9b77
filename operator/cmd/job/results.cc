#include "operator/cmd/job/results.h"

#include <fmt/format.h>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/system/input_file.h"
#include "operator/cmd/job/job_source.h"
#include "trainer/checkpoint/store/store.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

void look_at_checkpoint(const fs::path& folder) {
  checkpoint::Store::read_whole(folder);
}

void look_at_model(const fs::path& file) {
  checkpoint::SafetensorsHeader::read(InputFile(file));
}

}  // namespace

void require_results(const local::JobDirectory& directory, const Json& summary) {
  if (string_or(summary, "state", "") != "Succeeded") return;
  std::vector<std::string> lost;
  const auto look = [&](const char* field, void (*look_at)(const fs::path&)) {
    const std::string path = string_or(summary, field, "");
    if (path.empty()) return;
    try {
      look_at(directory.root() / path);
    } catch (const std::runtime_error& error) {  // damaged, or cannot be read
      lost.emplace_back(error.what());
    }
  };
  look("checkpoint", look_at_checkpoint);
  look("model", look_at_model);
  if (lost.empty()) return;
  throw Invalid(
      fmt::format("{}: expected checkpoint and model of the job that has succeeded here, "
                  "found {}; to train it anew, give it another --directory",
                  shown(directory.root()), fmt::join(lost, "; ")));
}

}  // namespace muster::cmd
