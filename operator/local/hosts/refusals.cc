#include "operator/local/hosts/refusals.h"

#include <algorithm>

#include "common/random.h"
#include "operator/local/hosts/session.h"

namespace muster::local {

namespace {

// OpenSSH's client prints one of these texts, in any language of the system, if the connection ends
// before it is accepted.
bool tells_of_a_refusal(const std::string& line) {
  const auto says = [&](const char* words) { return line.find(words) != std::string::npos; };
  return says("kex_exchange_identification: ") || says("Connection reset by ") ||
         says("Connection closed by ");
}

}  // namespace

std::optional<std::chrono::milliseconds> Refusals::pause_after(int code,
                                                               const std::string& last_line) {
  constexpr uint64_t kFirst = 400, kLongest = 3200;
  if (code != Session::kSshFailed || !tells_of_a_refusal(last_line) || count_ == kMost)
    return std::nullopt;
  const uint64_t longest = std::min(kFirst << count_++, kLongest);
  return std::chrono::milliseconds(longest / 2 + random_number() % (longest / 2));
}

}  // namespace muster::local
