#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster {

// A fuzz target in a program without libFuzzer.
struct FuzzTarget {
  const char* name;
  int (*run)(const uint8_t* bytes, size_t size);
};

// Returns all targets; tests/fuzz/CMakeLists.txt writes it.
std::vector<FuzzTarget> fuzz_targets();

}  // namespace muster
