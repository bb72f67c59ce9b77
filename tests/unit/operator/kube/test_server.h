#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/unit/operator/kube/certificates.h"

namespace muster::kube {

// An HTTP server for tests that answers, or fails to, as a test says: over TLS unless `identity` is
// left out, one thread for each connection.
class TestServer {
 public:
  struct Message {
    std::string method, target, body;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string client;                          // common name of its certificate
    int connection = 0;                          // counted from 1
  };
  struct Reply {
    int status = 200;
    std::string body;
    std::map<std::string, std::string> headers;
  };
  // Writes an answer piece by piece.
  class Peer {
   public:
    using Write = std::function<bool(std::string_view)>;
    explicit Peer(Write write) : write_(std::move(write)) {}
    void begin(const std::string& head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    bool chunk(std::string_view text);  // false: the client has gone
    void end();
    bool raw(std::string_view bytes) { return write_(bytes); }

   private:
    const Write write_;
  };
  // Nothing: the peer was used, or nothing is answered; then the connection is closed.
  using Handler = std::function<std::optional<Reply>(const Message&, Peer&)>;

  struct Settings {
    std::optional<Identity> identity;
    std::string client_authority;  // PEM: clients must show a certificate of it; empty: none
    std::string address = "127.0.0.1";
    unsigned short port = 0;
  };
  TestServer(Settings settings, Handler handler);
  ~TestServer();

  unsigned short port() const { return port_; }
  std::string url() const;
  // How many connections there have been.
  int connections() const;
  // Closes those that are open; new ones are accepted.
  void close_connections();

 private:
  struct Impl;
  template <class Stream>
  void serve(Stream& stream, const std::string& client, int number);
  void run(int number, std::shared_ptr<void> socket);

  const Settings settings_;
  const Handler handler_;
  unsigned short port_ = 0;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::kube
