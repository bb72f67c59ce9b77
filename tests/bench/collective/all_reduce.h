#pragma once

#include <cstddef>
#include <span>

namespace muster::bench {

// Seconds until two processes of this machine both have the sum of the `floats` numbers that each
// of them has just written: of each call the slower one's, the median of many.

// In memory that both map, as collectives do on one host: each adds up one half. `logged`: and logs
// what was there, which an all-reduce has no need of, for its sources stay, but the update in a
// step.
double shared_memory_seconds(size_t floats, bool logged);
// By TCP over loopback, as they do between hosts.
double wire_seconds(size_t floats);

// What the first cannot be quicker than: memcpy of what each process must read and write at least.
// For its half of the sum it reads that half of either's numbers and writes the sum. So it copies
// its own numbers to where the sum would be, and the other's to 4 KB that stay in its cache: the
// whole half at once or 4 KB at a time, whichever is quicker.
double copy_seconds(size_t floats);

// For whoever measures another one: how many calls; what a twin writes before each, and throws
// std::runtime_error unless that has become the sum.
size_t repeats_of(size_t floats);
void fill(std::span<float> numbers, int twin);
void check(std::span<const float> sum);

}  // namespace muster::bench
