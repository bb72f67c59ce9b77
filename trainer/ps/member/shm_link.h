#pragma once

#include <memory>
#include <string>

#include "trainer/ps/member/exchange.h"
#include "trainer/ps/member/grpc_link.h"

namespace muster::ps {

// A link through memory shared with a shard of this host (segment.h). `stream` carries the first
// request with the offer; if the shard accepts, all further ones go through the memory, else
// through the stream, and the log says why. The stream's end is the link's in either case.
// `name` is the shard's, for the log; end.memory is not null.
std::unique_ptr<ShardLink> make_shm_link(std::unique_ptr<GrpcLink> stream, const LinkEnd& end,
                                         std::string name);

}  // namespace muster::ps
