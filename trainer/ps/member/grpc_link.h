#pragma once

#include <memory>
#include <optional>
#include <string>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/ps/transport/shard_link.h"
#include "trainer/ps/transport/wire.h"

namespace grpc {
class Channel;
}

namespace muster::ps {

// The content of a stream's first message, which identifies the member.
struct LinkHello {
  std::string job_uid;
  std::string version;
  std::string layout_fingerprint;
  std::optional<SharedMemoryOffer> shared_memory;
  WireType wire = WireType::float32;
  int shard = 0;
  bool plaintext = false;  // the channel has no TLS: see seal.h
};

// A link over one bidirectional gRPC stream.
class GrpcLink : public ShardLink {
 public:
  // The shard's decision on the offer of shared memory, from the first reply that has one.
  struct Decision {
    Reply::SharedMemory shared_memory = Reply::NOT_DECIDED;
    std::string refusal;
  };
  virtual Decision decision() const = 0;
  // Whether the stream has ended, even if an answer came before.
  virtual bool ended() const = 0;
};

// The link rings `bell` at every change; `bell` must outlive the link.
std::unique_ptr<GrpcLink> make_grpc_link(std::shared_ptr<grpc::Channel> channel,
                                         const LinkHello& hello, LinkBell& bell);

}  // namespace muster::ps
