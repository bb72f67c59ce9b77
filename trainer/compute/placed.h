#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

enum class Place { host, gpu };

// Floats, and the memory that they lie in. A span is always in host memory; floats that may be in a
// GPU's memory are a Placed, so that only host() gives the host access. Does not own the memory.
// Float is `float` or `const float`.
template <class Float>
class Placed {
 public:
  Placed() = default;  // no floats
  // Host memory.
  Placed(std::span<float> floats) : floats_(floats) {}
  Placed(std::span<const float> floats) requires std::is_const_v<Float> : floats_(floats) {}
  template <class Allocator>
  Placed(std::vector<float, Allocator>& floats) : floats_(floats) {}
  template <class Allocator>
  requires std::is_const_v<Float> Placed(const std::vector<float, Allocator>& floats)
      : floats_(floats) {}
  Placed(Float* floats, size_t size) : floats_(floats, size) {}
  Placed(Place place, Float* floats, size_t size) : place_(place), floats_(floats, size) {}
  // Memory that may be written is memory that may be read.
  template <class Other>
  requires(std::same_as<const Other, Float> && !std::same_as<Other, Float>)
      Placed(const Placed<Other>& other)
      : Placed(other.place(), other.address(), other.size()) {}

  Place place() const { return place_; }
  bool is_on_host() const { return place_ == Place::host; }
  size_t size() const { return floats_.size(); }
  size_t size_bytes() const { return floats_.size_bytes(); }
  bool empty() const { return floats_.empty(); }

  // The floats, for the host. Throws std::logic_error if they are in a GPU's memory.
  std::span<Float> host() const {
    if (!is_on_host()) throw std::logic_error("expected floats in host memory, found a GPU's");
    return floats_;
  }
  // The address, for comparisons and for the calls of a GPU that can address this memory. The host
  // must not read or write there.
  Float* address() const { return floats_.data(); }
  Placed part(Range range) const { return {place_, floats_.data() + range.begin, range.size()}; }

 private:
  Place place_ = Place::host;
  std::span<Float> floats_;
};

using PlacedFloats = Placed<float>;
using ConstPlacedFloats = Placed<const float>;

}  // namespace muster::compute
