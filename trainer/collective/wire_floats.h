#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::host {
struct Arithmetic;
}

namespace muster::collective {

// Floats, and what of them goes over the wire: they themselves, or where they are to be rounded
// to bfloat16 two bytes for each, in memory beside them. Any two ranges can be used at once that
// have no float in common.
class WireFloats {
 public:
  // Zeros.
  WireFloats(size_t size, bool rounded);

  std::span<float> all() { return floats_; }
  std::span<const float> all() const { return floats_; }
  // What is sent of a range, once packed; or where it is received, to be unpacked.
  iovec bytes(compute::Range range);
  void pack(compute::Range range);
  void unpack(compute::Range range);

 private:
  static constexpr size_t kWidth = 2;  // bytes

  const host::Arithmetic* arithmetic_;
  compute::Floats floats_;
  std::vector<std::byte> packed_;  // empty where floats go as they are
};

}  // namespace muster::collective
