#pragma once

#include "trainer/compute/placed.h"
#include "trainer/ps/shard/messages.h"
#include "trainer/ps/transport/link_bell.h"

namespace muster::ps {

// A member's connection to one shard, over any transport. It carries one request at a time.
class ShardLink {
 public:
  enum class State { idle, waiting, answered, broken };

  virtual ~ShardLink() = default;

  // Sends a push (or, with empty `gradients`, a pull) and begins to wait for its reply. The reply's
  // parameters are written to `parameters` before state() becomes `answered`. The memory must live
  // until then, or until the link is destroyed.
  virtual void send(const PushHeader& header, compute::ConstPlacedFloats gradients,
                    compute::PlacedFloats parameters) = 0;
  virtual State state() = 0;
  // Returns the reply to the last request. Precondition: state() is `answered`.
  virtual ReplyHeader reply() const = 0;
};

}  // namespace muster::ps
