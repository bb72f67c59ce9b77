#pragma once

namespace muster {

// Gives cpprestsdk a pool of two threads, once a process, before its first use: its default of
// forty doubles the CPU a request costs. Call before anything of cpprestsdk.
void initialize_http_threads();

}  // namespace muster
