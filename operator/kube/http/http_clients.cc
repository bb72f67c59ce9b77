#include "operator/kube/http/http_clients.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/net/host_port.h"
#include "common/program/log.h"
#include "operator/kube/http/exchange.h"
#include "operator/kube/http/tls.h"

namespace muster::kube {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// The timeout of cpprestsdk itself. Our own deadlines come earlier, so this timeout ends only calls
// that nobody waits for any more.
constexpr std::chrono::seconds kPatience(600);

void refuse_stale(tcp::socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      info.tcpi_state != TCP_ESTABLISHED) {
    throw StaleConnection();
  }
}

// A server that vanishes without closing its connections is noticed after 14 seconds.
void keep_alive(tcp::socket& socket) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(socket.native_handle(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// Called before each request, with a connection that is new (not yet open) or from the pool. A new
// connection is opened here so that options can be set. Opening it needs the server's address
// family, which is known if the server is given by its address, as always in a pod.
void prepare(tcp::socket& socket, const std::optional<tcp>& family) {
  if (socket.is_open()) return refuse_stale(socket);
  if (!family) return;
  boost::system::error_code error;
  socket.open(*family, error);
  if (!error) keep_alive(socket);
}

std::optional<tcp> family_of(const std::string& host) {
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (error) return std::nullopt;
  return address.is_v6() ? tcp::v6() : tcp::v4();
}

web::uri parse_server(const std::string& server) {
  const auto refuse = [&](const std::string& why) -> Invalid {
    return Invalid("Kubernetes API server '" + server + "': " + why);
  };
  web::uri uri;
  try {
    uri = web::uri(server);
  } catch (const web::uri_exception& error) {
    throw refuse(error.what());
  }
  if (uri.scheme() != "https" && uri.scheme() != "http") {
    throw refuse("expected https://host:port");
  }
  if (uri.host().empty()) throw refuse("expected a host");
  // cpprestsdk reads [::1], and then looks for a host of that name.
  const std::string host = uri.host();
  if (!host.starts_with('[')) return uri;
  return web::uri_builder(uri).set_host(host.substr(1, host.size() - 2)).to_uri();
}

}  // namespace

HttpClients::HttpClients(Credentials& credentials)
    : credentials_(credentials), server_(parse_server(credentials.config().server)) {
  const int port = server_.port() > 0 ? server_.port() : server_.scheme() == "https" ? 443 : 80;
  host_ = join_host_port(server_.host(), std::to_string(port));
  renew(credentials.current());
}

web::http::client::http_client_config HttpClients::config(const Credentials::Tls& tls) const {
  web::http::client::http_client_config config;
  config.set_max_redirects(0);  // a redirect would send our token to another server
  config.set_nativehandle_options(
      [is_tls = server_.scheme() == "https",
       family = family_of(server_.host())](web::http::client::native_handle handle) {
        prepare(is_tls ? static_cast<asio::ssl::stream<tcp::socket&>*>(handle)->next_layer()
                       : *static_cast<tcp::socket*>(handle),
                family);
      });
  const auto material = std::make_shared<const TlsMaterial>(tls);
  config.set_ssl_context_callback(
      [material](asio::ssl::context& context) { material->apply(context.native_handle()); });
  return config;
}

void HttpClients::renew(const Credentials::Current& current) {
  web::http::client::http_client_config calls = config(current.tls);
  calls.set_timeout(kPatience);
  web::http::client::http_client_config streams = calls;
  calls.set_request_compressed_response(true);
  pair_.calls = std::make_shared<web::http::client::http_client>(server_, calls);
  pair_.streams = std::make_shared<web::http::client::http_client>(server_, streams);
  revision_ = current.revision;
}

HttpClients::Pair HttpClients::current() {
  const Credentials::Current current = credentials_.current();
  const MutexLock lock(mutex_);
  if (current.revision != revision_) {
    try {
      renew(current);
    } catch (const Invalid& error) {
      // Most likely a rotation is under way: the old certificates stay valid for a while.
      log::warning(std::string("the new certificates for the Kubernetes API cannot be used: ") +
                   error.what());
      revision_ = current.revision;
    }
  }
  Pair pair = pair_;
  pair.authorization = current.authorization;
  return pair;
}

}  // namespace muster::kube
