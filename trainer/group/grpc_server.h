#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "trainer/group/acceptor.h"
#include "trainer/group/identity.h"

namespace muster::group {

constexpr int kMaximumMessage = 4 << 20;  // bytes of one gRPC message, both ways

// A gRPC server of one service for peers of one identity, with limits for their calls and for the
// number of connected strangers. Thread-safe.
class GrpcServer {
 public:
  // Listens at once for peers that connect to `address`, and accepts calls from start() on. Throws
  // Unavailable naming the address if it cannot be bound.
  GrpcServer(const std::string& address, grpc::Service& service, const Identity& identity);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  void start();
  // The service calls this for a peer that has shown that it is of the job; otherwise the peer's
  // connection is ended like a stranger's. `peer` is the peer's name in the call's context.
  void welcome(const std::string& peer) { acceptor_.welcome(peer); }
  // Accepts no more calls, waits at most `most` for the calls under way, and then cancels them.
  void shut_down(std::chrono::milliseconds most);

  // Returns a channel to this server that stays within the process and uses no network.
  std::shared_ptr<grpc::Channel> local_channel();

 private:
  Acceptor acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc_;
  std::unique_ptr<grpc::Server> server_;
};

// Returns a channel to a peer of the same identity. The channel connects, and reconnects, by
// itself.
std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Identity& identity);

}  // namespace muster::group
