#pragma once

#include <cstddef>
#include <functional>

namespace muster::bench {

// Median seconds of a call, over some seconds after two calls that are not timed.
double median_seconds(const std::function<void()>& call);

// What moving `bytes` up and down cannot be faster than.

// Seconds of the four passes over memory that an exchange through shared memory makes (gradients
// in; gradients and parameters read, new parameters and the member's copy written: two; parameters
// out), each by as many threads as make memcpy fastest.
double memcpy_seconds(size_t bytes);

// Seconds until `bytes` have gone to another process over loopback and as many have come back:
// plain TCP, 1 MiB a call.
double tcp_seconds(size_t bytes);

}  // namespace muster::bench
