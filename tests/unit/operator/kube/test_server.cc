#include "tests/unit/operator/kube/test_server.h"

#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <set>

namespace muster::kube {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

std::string common_name(SSL* ssl) {
  X509* certificate = SSL_get_peer_certificate(ssl);
  if (certificate == nullptr) return {};
  char name[128] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  X509_free(certificate);
  return name;
}

}  // namespace

void TestServer::Peer::begin(const std::string& head) {
  write_(head);
}
bool TestServer::Peer::chunk(std::string_view text) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return write_(size + std::string(text) + "\r\n");
}
void TestServer::Peer::end() {
  write_("0\r\n\r\n");
}

struct TestServer::Impl {
  asio::io_context context;
  tcp::acceptor acceptor{context};
  asio::ssl::context tls{asio::ssl::context::tls_server};
  std::mutex mutex;  // guards the three below
  std::set<int> open;
  int count = 0;
  bool down = false;
  std::vector<std::thread> threads;
  std::thread accepting;
};

TestServer::TestServer(Settings settings, Handler handler)
    : settings_(std::move(settings)),
      handler_(std::move(handler)),
      impl_(std::make_unique<Impl>()) {
  if (settings_.identity) {
    impl_->tls.use_certificate(asio::buffer(settings_.identity->certificate),
                               asio::ssl::context::pem);
    impl_->tls.use_private_key(asio::buffer(settings_.identity->key), asio::ssl::context::pem);
  }
  if (!settings_.client_authority.empty()) {
    impl_->tls.add_certificate_authority(asio::buffer(settings_.client_authority));
    impl_->tls.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  }
  const tcp::endpoint endpoint(asio::ip::make_address(settings_.address), settings_.port);
  impl_->acceptor.open(endpoint.protocol());
  impl_->acceptor.set_option(asio::socket_base::reuse_address(true));
  impl_->acceptor.bind(endpoint);
  impl_->acceptor.listen();
  port_ = impl_->acceptor.local_endpoint().port();
  impl_->accepting = std::thread([this] {
    for (;;) {
      auto socket = std::make_shared<tcp::socket>(impl_->context);
      error_code error;
      impl_->acceptor.accept(*socket, error);
      const std::lock_guard lock(impl_->mutex);
      if (impl_->down) return;
      if (error) continue;
      impl_->open.insert(socket->native_handle());
      const int number = ++impl_->count;
      impl_->threads.emplace_back([this, number, socket] { run(number, socket); });
    }
  });
}

TestServer::~TestServer() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->down = true;
  }
  ::shutdown(impl_->acceptor.native_handle(), SHUT_RDWR);
  impl_->accepting.join();
  close_connections();
  for (std::thread& thread : impl_->threads) thread.join();
}

std::string TestServer::url() const {
  const bool v6 = settings_.address.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + settings_.address + "]" : settings_.address;
  return (settings_.identity ? "https://" : "http://") + host + ":" + std::to_string(port_);
}

int TestServer::connections() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->count;
}

void TestServer::close_connections() {
  const std::lock_guard lock(impl_->mutex);
  for (const int descriptor : impl_->open) ::shutdown(descriptor, SHUT_RDWR);
}

void TestServer::run(int number, std::shared_ptr<void> shared) {
  auto& socket = *static_cast<tcp::socket*>(shared.get());
  const int descriptor = socket.native_handle();
  try {
    if (settings_.identity) {
      asio::ssl::stream<tcp::socket&> stream(socket, impl_->tls);
      stream.handshake(asio::ssl::stream_base::server);
      serve(stream, common_name(stream.native_handle()), number);
    } else {
      serve(socket, "", number);
    }
  } catch (const std::exception&) {
    // The client has gone, or was sent away.
  }
  const std::lock_guard lock(impl_->mutex);
  impl_->open.erase(descriptor);
  error_code ignored;
  socket.shutdown(tcp::socket::shutdown_both, ignored);
  socket.close(ignored);
}

template <class Stream>
void TestServer::serve(Stream& stream, const std::string& client, int number) {
  beast::flat_buffer buffer;
  Peer peer([&](std::string_view bytes) {
    error_code error;
    asio::write(stream, asio::buffer(bytes), error);
    return !error;
  });
  for (;;) {
    http::request<http::string_body> request;
    http::read(stream, buffer, request);
    Message message{std::string(request.method_string()),
                    std::string(request.target()),
                    request.body(),
                    {},
                    client,
                    number};
    for (const auto& header : request) {
      std::string name(header.name_string());
      for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
      message.headers[name] = std::string(header.value());
    }
    const std::optional<Reply> reply = handler_(message, peer);
    if (!reply) return;
    http::response<http::string_body> response(static_cast<http::status>(reply->status), 11);
    for (const auto& [name, value] : reply->headers) response.set(name, value);
    response.body() = reply->body;
    response.prepare_payload();
    http::write(stream, response);
  }
}

}  // namespace muster::kube
