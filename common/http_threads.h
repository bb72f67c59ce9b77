#pragma once

#include <cstddef>

namespace muster {

// Gives cpprestsdk a pool of `threads`, once a process, before its first use: its default of forty
// doubles the CPU a request costs. Call before anything of cpprestsdk; the first call decides.
void initialize_http_threads(size_t threads = 2);

}  // namespace muster
