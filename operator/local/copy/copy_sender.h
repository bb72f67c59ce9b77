#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "operator/local/copy/copy_list.h"
#include "operator/local/copy/copy_wire.h"

namespace muster::local {

// The progress of copying to all hosts. Several threads add to it.
struct CopyProgress {
  std::atomic<uint64_t> wanted{0};  // bytes that hosts have asked for
  std::atomic<uint64_t> sent{0};
};

struct Sent {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// Copies all copies to the host at the other end of the wire, which runs receive_copies(), and
// makes it create `folder` without looking into it. Returns the amount sent. Throws BrokenWire,
// naming the path that was being copied; or Unavailable with the problem on the host or on this
// machine, for example a file that changes while it is sent.
Sent send_copies(CopyWire& wire, const std::filesystem::path& folder,
                 const std::vector<Copy>& copies, CopyProgress& progress);

}  // namespace muster::local
