#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/net/http_server.h"
#include "tests/unit/common/net/listener.h"

using namespace muster;

// A client says the bytes to /metrics and its like, over a connection of its own. The server must
// close it, and answer the next client.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const int port = free_port();
  static HttpServer* const server = [] {
    auto* made = new HttpServer("127.0.0.1:" + std::to_string(port));
    made->handle("/x", [] { return HttpReply{200, "text/plain", "hello"}; });
    made->start();
    return made;
  }();
  static_cast<void>(server);
  const Descriptor client = connect_to(port);
  if (!client) __builtin_trap();
  send(client.get(), bytes, size, MSG_NOSIGNAL);
  shutdown(client.get(), SHUT_WR);
  char piece[4096];
  while (recv(client.get(), piece, sizeof piece, 0) > 0) {
  }
  return 0;
}
