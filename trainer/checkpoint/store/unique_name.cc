#include "trainer/checkpoint/store/unique_name.h"

#include <fmt/format.h>

#include <charconv>

#include "common/random.h"

namespace muster::checkpoint {

using std::chrono::seconds;
using std::chrono::system_clock;

std::string unique_name() {
  const auto now = std::chrono::duration_cast<seconds>(system_clock::now().time_since_epoch());
  return fmt::format("{}-{:016x}", now.count(), random_number());
}

std::optional<system_clock::time_point> time_of(std::string_view unique_name) {
  // Any greater number of seconds would pass the clock's range.
  constexpr int64_t kMost = 4'000'000'000;
  int64_t count = 0;
  const char* const end = unique_name.data() + unique_name.size();
  const auto [at, error] = std::from_chars(unique_name.data(), end, count);
  if (error != std::errc() || at == end || *at != '-' || count < 0 || count > kMost) {
    return std::nullopt;
  }
  return system_clock::time_point(seconds(count));
}

}  // namespace muster::checkpoint
