#include "common/net/http_server.h"

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "common/error.h"
#include "common/net/connection_limit.h"
#include "common/net/host_port.h"
#include "common/text/whole_number.h"

namespace muster {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Limits for a peer: the size of its head, the bytes of a body that are dropped, and its time.
constexpr uint32_t kMostHead = 8 * 1024;
constexpr size_t kMostDropped = 1024 * 1024;
constexpr std::chrono::seconds kPatience(10);
constexpr ConnectionLimit::Most kMostConnections{.of_address = 128, .in_all = 256};
constexpr const char* kEveryAddress = "::";

using Handlers = std::map<std::string, HttpServer::Handler>;
using Response = http::response<http::string_body>;

HttpReply reply_to(const Handlers& handlers, const http::request<http::empty_body>& request) {
  if (request.method() != http::verb::get) {
    return {405, "text/plain; charset=utf-8", "only GET is answered here\n"};
  }
  const std::string target(request.target());
  const auto handler = handlers.find(target.substr(0, target.find('?')));
  if (handler == handlers.end()) return {404, "text/plain; charset=utf-8", "not found\n"};
  try {
    return handler->second();
  } catch (const std::exception& error) {
    return {500, "text/plain; charset=utf-8", std::string(error.what()) + "\n"};
  }
}

// One connection. The object lives as long as an operation on it is under way.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const Handlers& handlers, std::function<void()> on_end)
      : stream_(std::move(socket)), handlers_(handlers), on_end_(std::move(on_end)) {}
  ~Session() { on_end_(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read() {
    parser_.emplace();
    parser_->header_limit(kMostHead);
    // answer() refuses bodies; with a limit here it would not be reached.
    parser_->body_limit(UINT64_MAX);
    stream_.expires_after(kPatience);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, size_t) {
                              if (!error) self->answer();
                            });
  }

  void close() { stream_.close(); }

 private:
  void answer() {
    const auto& request = parser_->get();
    // The body is never read, so the connection cannot be used again.
    const bool has_body = !parser_->is_done();
    const HttpReply reply = has_body && request.method() == http::verb::get
                                ? HttpReply{413, "text/plain; charset=utf-8", "no body is taken\n"}
                                : reply_to(handlers_, request);
    response_ = Response(static_cast<http::status>(reply.status), request.version());
    response_.set(http::field::content_type, reply.content_type);
    response_.set(http::field::cache_control, "no-store");
    if (reply.status == 405) response_.set(http::field::allow, "GET");
    response_.keep_alive(request.keep_alive() && !has_body);
    response_.body() = reply.body;
    response_.prepare_payload();
    stream_.expires_after(kPatience);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code error, size_t) {
      if (!error) self->go_on();
    });
  }

  void go_on() {
    if (response_.keep_alive()) return read();
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    drain();
  }

  // If the server closed now, a peer that is still sending would get a reset instead of the answer.
  // So this reads and drops some of its bytes, until the peer has read the answer and leaves, or
  // its time is up.
  void drain() {
    stream_.async_read_some(asio::buffer(piece_),
                            [self = shared_from_this()](error_code error, size_t got) {
                              self->dropped_ += got;
                              if (!error && self->dropped_ < kMostDropped) self->drain();
                            });
  }

  beast::tcp_stream stream_;
  const Handlers& handlers_;
  const std::function<void()> on_end_;
  beast::flat_buffer buffer_{kMostHead};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Response response_;
  std::array<char, 4096> piece_;
  size_t dropped_ = 0;
};

}  // namespace

struct HttpServer::Impl {
  explicit Impl(std::string host_and_port) : address(std::move(host_and_port)) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw Unavailable("cannot serve HTTP on '" + address + "': " + why);
  }

  void listen() {
    const std::string host = host_of(address), port = port_of(address);
    error_code error = listen_at(host, port);
    if (error && host == kEveryAddress) error = listen_at("0.0.0.0", port);  // without IPv6
    if (error) fail(error.message());
  }

  error_code listen_at(const std::string& host, const std::string& port) {
    error_code error;
    tcp::resolver resolver(context);
    const auto found = resolver.resolve(
        host, port, tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) return error;
    const tcp::endpoint endpoint = *found.begin();
    error_code ignored;
    acceptor.close(ignored);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && host == kEveryAddress) acceptor.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }

  void accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (!error) {
        begin(std::move(socket));
        return accept();
      }
      // Most likely there are no descriptors left; they become free when other peers have been
      // answered.
      pause.expires_after(std::chrono::milliseconds(100));
      pause.async_wait([this](error_code cancelled) {
        if (!cancelled) accept();
      });
    });
  }

  void begin(tcp::socket socket) {
    const uint64_t number = next++;
    const std::string host = peer_address(socket.native_handle()).host;
    const auto session = std::make_shared<Session>(std::move(socket), handlers, [this, number] {
      limit.remove(number);
      sessions.erase(number);
    });
    sessions[number] = session;
    session->read();
    const auto excess = limit.add(number, host);
    if (!excess) return;
    if (const auto other = sessions[*excess].lock()) other->close();
  }

  const std::string address;
  std::map<uint64_t, std::weak_ptr<Session>> sessions;
  ConnectionLimit limit{kMostConnections};
  uint64_t next = 0;
  Handlers handlers;
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  asio::steady_timer pause{context};
  std::thread thread;
};

HttpServer::HttpServer(const std::string& address) : impl_(std::make_unique<Impl>(address)) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) impl_->fail("expected host:port");
  if (!whole_number<int>(std::string_view(address).substr(colon + 1), 1, 65535))
    impl_->fail("expected a port from 1 to 65535");
}

HttpServer::~HttpServer() {
  impl_->context.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

void HttpServer::handle(const std::string& path, Handler handler) {
  impl_->handlers[path] = std::move(handler);
}

void HttpServer::start() {
  impl_->listen();
  impl_->accept();
  impl_->thread = std::thread([this] { impl_->context.run(); });
}

}  // namespace muster
