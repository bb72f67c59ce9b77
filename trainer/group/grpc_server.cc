#include "trainer/group/grpc_server.h"

#include "common/error.h"
#include "common/net/key_pair.h"
#include "trainer/group/peer_registry.h"

namespace muster::group {

namespace {
constexpr int kHeaderSlack = 64 << 10;
// A connection that is quiet for this time is pinged, and closed if no answer comes: a sleeping
// process at the other end must not block its successor.
constexpr int kQuietMilliseconds = 2000;
constexpr int kAnswerMilliseconds = 3000;
constexpr int kGreetingMilliseconds = static_cast<int>(PeerRegistry::kGreeting.count());
constexpr int kMostCalls = 32;  // calls of one connection at a time
// A handshake takes some 100 KiB of memory, or 300 KiB if the stranger sends the longest
// certificate that TLS allows. A peer of the job identifies itself in its first message, of a few
// KiB; until we have read that message, more data for a ps may arrive.
constexpr Acceptor::Limits kLimits{{.of_address = 96, .in_all = 192},
                                   PeerRegistry::kGreeting,
                                   std::chrono::milliseconds(kAnswerMilliseconds),
                                   /*bytes_of_one=*/16 << 20,
                                   /*bytes_of_all=*/32 << 20};
}  // namespace

GrpcServer::GrpcServer(const std::string& address, grpc::Service& service, const Identity& identity)
    : acceptor_(address, kLimits) {
  grpc::ServerBuilder builder;
  to_grpc_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      identity.server_credentials());
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(kMaximumMessage + kHeaderSlack);
  builder.SetMaxSendMessageSize(kMaximumMessage + kHeaderSlack);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCalls);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kQuietMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kAnswerMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kGreetingMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);  // clients ask often
  server_ = builder.BuildAndStart();
  if (!server_) throw Unavailable(address + ": gRPC serves nobody there");
}

GrpcServer::~GrpcServer() {
  shut_down({});
}

void GrpcServer::start() {
  acceptor_.start([this](Descriptor socket) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = -1;
    connection.fd = socket.release();
    to_grpc_->HandleNewConnection(&connection);
  });
}

void GrpcServer::shut_down(std::chrono::milliseconds most) {
  acceptor_.stop();
  server_->Shutdown(std::chrono::system_clock::now() + most);
}

std::shared_ptr<grpc::Channel> GrpcServer::local_channel() {
  return server_->InProcessChannel(grpc::ChannelArguments());
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Identity& identity) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaximumMessage + kHeaderSlack);
  arguments.SetMaxSendMessageSize(kMaximumMessage + kHeaderSlack);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // The time limit for making a connection. A peer that gets no CPU for a while is not lost.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kQuietMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A peer that comes back in a new pod has a new address. By default gRPC asks DNS for addresses
  // only every 30 s.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kQuietMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kAnswerMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (identity) arguments.SetSslTargetNameOverride(KeyPair::kHost);
  return grpc::CreateCustomChannel(address, identity.channel_credentials(), arguments);
}

}  // namespace muster::group
