#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "operator/local/copy/copy_list.h"
#include "operator/local/copy/copy_wire.h"

namespace muster::local {

// How far copying to all hosts is. Several threads add to it.
struct CopyProgress {
  std::atomic<uint64_t> wanted{0};  // bytes that hosts have said that they lack
  std::atomic<uint64_t> sent{0};
};

struct Sent {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// Makes the host at the other end of the wire, which runs receive_copies(), have all copies, and
// `folder`, of which nothing is looked at. Returns what it has been sent. Throws BrokenWire, naming
// the path that was being copied, or Unavailable with what stands in the way: on the host, or here,
// as a file that changes meanwhile.
Sent send_copies(CopyWire& wire, const std::filesystem::path& folder,
                 const std::vector<Copy>& copies, CopyProgress& progress);

}  // namespace muster::local
