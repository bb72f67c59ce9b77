#pragma once

#include <memory>
#include <string>

#include "trainer/ps/shard_link.h"

namespace grpc {
class Channel;
}

namespace muster::ps {

// Who we are, as the first message of a stream says.
struct LinkHello {
  std::string job_uid;
  std::string version;
  std::string layout_fingerprint;
};

// A link over one bidirectional gRPC stream. Rings `bell` at every change; `bell` must outlive it.
std::unique_ptr<ShardLink> make_grpc_link(std::shared_ptr<grpc::Channel> channel,
                                          const LinkHello& hello, Bell& bell);

}  // namespace muster::ps
