// What a collective of two processes of this machine does in a step, piece by piece.
//   bench_collective KIND BYTES                 GB/s of an all-reduce of so many bytes, or its
//   limit bench_collective apart TRAINING.YAML STEPS  seconds a step with communication disabled

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/threads/heap.h"
#include "tests/bench/collective/all_reduce.h"
#include "tests/bench/collective/apart.h"
#include "tests/bench/collective/gloo.h"

namespace muster::bench {
namespace {

double all_reduce_seconds(const std::string& what, size_t floats) {
  if (what == "shm") return shared_memory_seconds(floats, false);
  if (what == "shm-logged") return shared_memory_seconds(floats, true);
  if (what == "tcp") return wire_seconds(floats);
  if (what == "memcpy") return copy_seconds(floats);
  if (what == "gloo-ring") return gloo_ring_seconds(floats);
  if (what == "gloo-halving-doubling") return gloo_halving_doubling_seconds(floats);
  throw std::runtime_error(
      "expected shm, shm-logged, tcp, memcpy, gloo-ring, gloo-halving-doubling or apart, found " +
      what);
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 3 && arguments[0] == "apart") {
    const double seconds = apart_seconds(arguments[1], std::stoul(arguments[2]));
    fmt::print("{{\"secondsPerStep\": {}}}\n", seconds);
    return;
  }
  if (arguments.size() != 2)
    throw std::runtime_error("expected KIND BYTES or apart TRAINING.YAML STEPS");
  const size_t floats = std::stoul(arguments[1]) / sizeof(float);
  const double seconds = all_reduce_seconds(arguments[0], floats);
  fmt::print("{{\"gigabytesPerSecond\": {}, \"seconds\": {}}}\n",
             1e-9 * static_cast<double>(floats * sizeof(float)) / seconds, seconds);
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::keep_freed_memory();  // as the trainer does
  try {
    muster::bench::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_collective: {}\n", error.what());
    return 1;
  }
}
