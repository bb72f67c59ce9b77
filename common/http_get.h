#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace muster {

// Gives cpprestsdk a pool of `threads` threads, once per process: its default of forty doubles the
// CPU time of a request. Call it before any other use of cpprestsdk; the first call decides.
void initialize_http_threads(size_t threads = 2);

// Sends GET http://address/path and returns the body. Throws Unavailable on a refused connection, a
// timeout, a status other than 200, a redirect, or a body of more than `limit` bytes.
std::string http_get(const std::string& address, const std::string& path,
                     std::chrono::milliseconds timeout, size_t limit = 64 * 1024);

}  // namespace muster
