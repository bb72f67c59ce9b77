#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "trainer/group/identity.h"

namespace muster::group {

constexpr int kMaximumMessage = 4 << 20;  // bytes of one gRPC message, both ways

// Starts a gRPC server of one service at `address` (see listening_address), with its limits set,
// for peers of the same identity. Throws Unavailable naming the address if it cannot be bound.
std::unique_ptr<grpc::Server> start_server(const std::string& address, grpc::Service& service,
                                           const Identity& identity);

// Returns a channel to a peer of the same identity. It connects by itself, again and again.
std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Identity& identity);

}  // namespace muster::group
