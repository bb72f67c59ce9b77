#include "common/http_server.h"

#include <cpprest/http_listener.h>
#include <netdb.h>
#include <pplx/threadpool.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/http_threads.h"
#include "common/log.h"

namespace muster {

namespace {

namespace http = web::http;

http::http_response to_response(const HttpReply& reply) {
  http::http_response response(static_cast<http::status_code>(reply.status));
  response.headers().set_cache_control("no-store");
  response.set_body(reply.body, reply.content_type);
  return response;
}

// A reply nobody waits for any more fails in its own task, which must not stay unobserved.
void send(const http::http_request& request, const HttpReply& reply) {
  request.reply(to_response(reply)).then([](pplx::task<void> sent) {
    try {
      sent.get();
    } catch (const std::exception&) {
    }
  });
}

// Binds `host` and `port` for a moment, for the system's own words where that fails: cpprestsdk's
// are misleading, and a second listener of one address takes the first down with it.
std::string bind_error(const std::string& host, int port) {
  if (port < 1 || port > 65535) return "expected a port from 1 to 65535";
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
      error != 0) {
    return gai_strerror(error);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  const int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
  const int on = 1;
  std::string error;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 1) != 0) {
    error = std::generic_category().message(errno);
  }
  if (fd >= 0) close(fd);
  return error;
}

}  // namespace

struct HttpServer::Impl {
  std::string address;
  std::map<std::string, Handler> handlers;
  http::experimental::listener::http_listener listener;
  bool open = false;

  explicit Impl(const std::string& host_and_port)
      : address(host_and_port), listener(web::uri("http://" + host_and_port)) {}

  void answer(const http::http_request& request) const {
    if (request.method() != http::methods::GET) {
      return send(request, {405, "text/plain; charset=utf-8", "only GET is answered here\n"});
    }
    const auto handler = handlers.find(request.relative_uri().path());
    if (handler == handlers.end()) {
      return send(request, {404, "text/plain; charset=utf-8", "not found\n"});
    }
    HttpReply reply;
    try {
      reply = handler->second();
    } catch (const std::exception& error) {
      reply = {500, "text/plain; charset=utf-8", std::string(error.what()) + "\n"};
    }
    send(request, reply);
  }
};

HttpServer::HttpServer(const std::string& address) {
  initialize_http_threads();
  try {
    impl_ = std::make_unique<Impl>(address);
  } catch (const std::exception& error) {  // web::uri_exception, std::invalid_argument
    throw Unavailable("cannot serve HTTP on '" + address + "': " + error.what());
  }
  impl_->listener.support(
      [impl = impl_.get()](const http::http_request& request) { impl->answer(request); });
}

HttpServer::~HttpServer() {
  if (!impl_->open) return;
  try {
    impl_->listener.close().get();
  } catch (const std::exception& error) {
    log::warning("cannot close the HTTP server",
                 {{"address", impl_->address}, {"cause", error.what()}});
  }
}

void HttpServer::handle(const std::string& path, Handler handler) {
  impl_->handlers[path] = std::move(handler);
}

void HttpServer::start() {
  const web::uri& uri = impl_->listener.uri();
  const std::string error = bind_error(uri.host(), uri.port());
  if (!error.empty()) {
    throw Unavailable("cannot serve HTTP on " + impl_->address + ": " + error);
  }
  try {
    impl_->listener.open().get();
    impl_->open = true;
  } catch (const std::exception& failure) {
    throw Unavailable("cannot serve HTTP on " + impl_->address + ": " + failure.what());
  }
}

}  // namespace muster
