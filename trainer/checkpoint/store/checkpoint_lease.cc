#include "trainer/checkpoint/store/checkpoint_lease.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "common/system/file.h"
#include "trainer/checkpoint/store/unique_name.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;
using std::chrono::system_clock;

constexpr std::chrono::seconds kTerm = std::chrono::minutes(10);

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

CheckpointLease::CheckpointLease(const fs::path& checkpoint, std::string reader)
    : path_(checkpoint / fmt::format("lease-{}-{}", file_name_part(reader), unique_name())),
      reader_(std::move(reader)) {
  write();
}

CheckpointLease::~CheckpointLease() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

void CheckpointLease::renew() {
  if (std::chrono::steady_clock::now() - written_ > kTerm / 4) write();
}

void CheckpointLease::write() {
  written_ = std::chrono::steady_clock::now();
  write_file_atomically(path_,
                        fmt::format("{} {}\n", seconds_of(system_clock::now() + kTerm), reader_));
}

bool CheckpointLease::any_active(const fs::path& checkpoint) {
  const int64_t now = seconds_of(system_clock::now());
  std::error_code error;
  for (fs::directory_iterator it(checkpoint, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->path().filename().string().starts_with("lease-")) continue;
    try {
      const std::string text = read_file(it->path(), kLongestText);
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
