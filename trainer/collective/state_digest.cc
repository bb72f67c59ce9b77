#include "trainer/collective/state_digest.h"

#include <algorithm>
#include <optional>

#include "common/digest.h"

namespace muster::collective {

uint32_t digest_of(std::span<const compute::Floats> state) {
  uint32_t digest = 0;
  for (const compute::Floats& buffer : state) digest = digest_of(buffer, digest);
  return digest;
}

uint32_t digest_of(std::span<const float> buffer, uint32_t before) {
  return crc32c(std::as_bytes(buffer), before);
}

std::vector<int> odd_members(std::span<const uint32_t> digests) {
  std::optional<uint32_t> most;
  for (const uint32_t digest : digests)
    if (2 * static_cast<size_t>(std::ranges::count(digests, digest)) > digests.size())
      most = digest;
  std::vector<int> odd;
  for (size_t member = 0; member < digests.size(); ++member)
    if (digests[member] != most) odd.push_back(static_cast<int>(member));
  return odd;
}

}  // namespace muster::collective
