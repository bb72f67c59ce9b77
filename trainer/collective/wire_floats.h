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

// Floats, and the bytes that represent them on the wire: the floats themselves or, if they are
// rounded to bfloat16, two bytes for each float in separate memory. Ranges that do not overlap can
// be used at the same time.
class WireFloats {
 public:
  // Begins with zeros.
  WireFloats(size_t size, bool rounded);

  std::span<float> all() { return floats_; }
  std::span<const float> all() const { return floats_; }
  // The bytes of a range on the wire: sent after pack(), or received before unpack().
  iovec bytes(compute::Range range);
  void pack(compute::Range range);
  void unpack(compute::Range range);

 private:
  static constexpr size_t kWidth = 2;  // bytes

  const host::Arithmetic* arithmetic_;
  compute::Floats floats_;
  std::vector<std::byte> packed_;  // empty if floats are sent unchanged
};

}  // namespace muster::collective
