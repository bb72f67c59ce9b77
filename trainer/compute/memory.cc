#include "trainer/compute/memory.h"

#include <algorithm>

namespace muster::compute {

Completion HostMemory::read(Range range, std::span<float> to) const {
  std::copy(floats_.begin() + range.begin, floats_.begin() + range.end, to.begin());
  return {};
}

Completion HostMemory::write(Range range, std::span<const float> from) {
  std::copy_n(from.begin(), range.size(), floats_.begin() + range.begin);
  return {};
}

HostView::HostView(Memory& memory) : memory_(memory), values_(memory.host_view()) {
  if (!values_.empty() || memory.size() == 0) return;
  copy_.resize(memory.size());
  values_ = copy_;
  memory_.read({0, copy_.size()}, copy_).wait();
}

void HostView::store() {
  if (!copy_.empty()) memory_.write({0, copy_.size()}, copy_).wait();
}

}  // namespace muster::compute
