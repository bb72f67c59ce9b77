#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "common/error.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::records {

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(MUSTER_SOURCE_DIR) / "tests/fixtures/records" / name;
}

class TestFolder : public test::TemporaryFolder {
 public:
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path() / name, std::ios::binary) << bytes;
    return path() / name;
  }
};

using test::error_of;

}  // namespace muster::records
