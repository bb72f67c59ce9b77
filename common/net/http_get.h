#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace muster {

// Sends GET http://address/path and returns the body. The address is an IP address with a port, for
// example "10.0.0.1:80" or "[fd00::1]:80". The peer may be hostile: at most the head and `limit`
// bytes of the body are kept, however much the peer sends. Throws Unavailable on another address, a
// refused connection, an answer that is not whole in time, a status other than 200 (a redirect
// too), or a longer body.
std::string http_get(const std::string& address, const std::string& path,
                     std::chrono::milliseconds timeout, size_t limit = 64 * 1024);

}  // namespace muster
