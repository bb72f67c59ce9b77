#pragma once

#include <span>

#include "trainer/ps/shard/messages.h"
#include "trainer/ps/transport/bell.h"

namespace muster::ps {

// A member's way to one shard, whatever carries it. One request at a time.
class ShardLink {
 public:
  enum class State { idle, waiting, answered, broken };

  virtual ~ShardLink() = default;

  // Sends a push (or pull: `gradients` empty) and begins to wait for its reply, whose parameters
  // are written to `parameters` before state() is answered. The spans must live until then or until
  // the link is gone.
  virtual void send(const PushHeader& header, std::span<const float> gradients,
                    std::span<float> parameters) = 0;
  virtual State state() = 0;
  // Of the last request; state() is answered.
  virtual ReplyHeader reply() const = 0;
};

}  // namespace muster::ps
