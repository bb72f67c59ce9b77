#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "trainer/group/acceptor.h"
#include "trainer/group/identity.h"

namespace muster::group {

constexpr int kMaximumMessage = 4 << 20;  // bytes of one gRPC message, both ways

// A gRPC server of one service for peers of one identity, with limits for what they may ask and for
// how many strangers may be connected. Thread-safe.
class GrpcServer {
 public:
  // Listens for peers that reach us as `address` at once, and takes calls from start() on. Throws
  // Unavailable naming the address if it cannot be bound.
  GrpcServer(const std::string& address, grpc::Service& service, const Identity& identity);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  void start();
  // The service calls this for a peer that has said that it is of the job; else the peer's
  // connection is ended as a stranger's. `peer` is the name that the call's context has for it.
  void welcome(const std::string& peer) { acceptor_.welcome(peer); }
  // Takes no more calls, waits at most `most` for those under way, and cancels the others.
  void shut_down(std::chrono::milliseconds most);

  // Returns a channel to this server that stays within the process and uses no network.
  std::shared_ptr<grpc::Channel> local_channel();

 private:
  Acceptor acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc_;
  std::unique_ptr<grpc::Server> server_;
};

// Returns a channel to a peer of the same identity. It connects by itself, again and again.
std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Identity& identity);

}  // namespace muster::group
