#pragma once

#include <functional>
#include <memory>
#include <string>

namespace muster {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// A small HTTP/1.1 server (Boost.Beast) for /metrics, /healthz and /progress, on a separate thread.
// The handlers run on this thread, one at a time, and must not block. Only GET: the answer to
// another method is 405, and to a request with a body 413; the body is not read, and the connection
// is closed. A connection ends if its head has more than 8 KiB or its peer takes longer than ten
// seconds. There are at most 128 connections from one address and 256 in all
// (common/net/connection_limit.h).
class HttpServer {
 public:
  using Handler = std::function<HttpReply()>;

  // `address` is "host:port"; "[::]:port" is every address of this host, of IPv4 too. Throws
  // Unavailable, naming the address, if it cannot be bound.
  explicit HttpServer(const std::string& address);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Answers `path`, an exact path such as "/metrics", with `handler`. Call it before start().
  void handle(const std::string& path, Handler handler);
  void start();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
