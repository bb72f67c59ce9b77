#pragma once

#include <memory>
#include <string>

#include "trainer/ps/member/exchange.h"
#include "trainer/ps/member/grpc_link.h"

namespace muster::ps {

// Makes a link through memory shared with a shard of this host (segment.h). `stream` carries the
// first request with the offer. If the shard accepts the offer, all further requests go through the
// memory; otherwise they go through the stream, and the log says why. In both cases the link ends
// when the stream ends. `name` is the shard's name for the log; end.memory must not be null.
std::unique_ptr<ShardLink> make_shm_link(std::unique_ptr<GrpcLink> stream, const LinkEnd& end,
                                         std::string name);

}  // namespace muster::ps
