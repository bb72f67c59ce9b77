#include "trainer/compute/memory.h"

#include <algorithm>

namespace muster::compute {

Completion HostMemory::read(Range range, PlacedFloats to) const {
  std::copy(floats_.begin() + range.begin, floats_.begin() + range.end, to.host().begin());
  return {};
}

Completion HostMemory::write(Range range, ConstPlacedFloats from) {
  std::copy_n(from.host().begin(), range.size(), floats_.begin() + range.begin);
  return {};
}

HostView::HostView(Memory& memory) : memory_(memory) {
  if (memory.floats().is_on_host()) {
    values_ = memory.floats().host();
    return;
  }
  copy_.resize(memory.size());
  values_ = copy_;
  memory_.read({0, copy_.size()}, copy_).wait();
}

void HostView::store() {
  if (!copy_.empty()) memory_.write({0, copy_.size()}, copy_).wait();
}

}  // namespace muster::compute
