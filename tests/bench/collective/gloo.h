#pragma once

#include <cstddef>

namespace muster::bench {

// As all_reduce.h's, by Gloo's own over TCP and loopback.
double gloo_ring_seconds(size_t floats);
double gloo_halving_doubling_seconds(size_t floats);

}  // namespace muster::bench
