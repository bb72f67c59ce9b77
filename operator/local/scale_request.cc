#include "operator/local/scale_request.h"

#include <limits>

#include "common/documents/json.h"
#include "common/documents/json_file.h"
#include "common/system/file.h"

namespace muster::local {

namespace {

constexpr const char* kWorkers = "workers";

}  // namespace

void request_scale(const JobDirectory& directory, int workers) {
  write_file_atomically(directory.scale(), Json{{kWorkers, workers}}.dump() + "\n");
}

void drop_scale_request(const JobDirectory& directory) {
  std::error_code error;
  std::filesystem::remove(directory.scale(), error);
}

std::optional<int> take_scale_request(const JobDirectory& directory) {
  std::error_code error;
  if (!std::filesystem::exists(directory.scale(), error)) return std::nullopt;
  const int64_t workers = integer_or(read_json_or_null(directory.scale()), kWorkers, -1);
  drop_scale_request(directory);
  if (workers < 0 || workers > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(workers);
}

}  // namespace muster::local
