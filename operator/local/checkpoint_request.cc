#include "operator/local/checkpoint_request.h"

#include "common/system/file.h"

namespace muster::local {

void request_checkpoint(const JobDirectory& directory, const std::string& request) {
  write_file_atomically(directory.checkpoint_request(), request);
}

std::string requested_checkpoint(const JobDirectory& directory) {
  const std::filesystem::path file = directory.checkpoint_request();
  return is_there(file) ? read_file(file) : "";
}

void drop_checkpoint_request(const JobDirectory& directory) {
  std::error_code error;
  std::filesystem::remove(directory.checkpoint_request(), error);
}

}  // namespace muster::local
