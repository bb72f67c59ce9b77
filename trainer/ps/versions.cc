#include "trainer/ps/versions.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::ps {

void Versions::load(compute::Floats values, int spares) {
  auto loaded = std::make_shared<Buffer>();
  loaded->values = std::move(values);
  current_ = std::move(loaded);
  previous_.reset();
  spare_.clear();
  for (int i = 0; i < spares; ++i) spare_.push_back(make());
}

Versions::Handle Versions::make() const {
  auto made = std::make_shared<Buffer>();
  made->values.resize(current_->values.size());
  return made;
}

Versions::Loan Versions::lend(const Handle& buffer) {
  if (!buffer) return nullptr;
  buffer->loans.fetch_add(1, std::memory_order_relaxed);
  return {&buffer->values, [buffer](const compute::Floats*) {
            buffer->loans.fetch_sub(1, std::memory_order_release);
          }};
}

bool Versions::is_lent(const Handle& buffer) {
  return buffer->loans.load(std::memory_order_acquire) > 0;
}

// The latest: it may be in cache still.
Versions::Handle Versions::take() {
  const auto found = std::find_if_not(spare_.rbegin(), spare_.rend(), is_lent);
  if (found == spare_.rend()) return make();
  Handle taken = std::move(*found);
  spare_.erase(std::next(found).base());
  return taken;
}

// All but one: loans begin again and again.
void Versions::forget_spares() {
  const auto unlent = std::ranges::find_if_not(spare_, is_lent);
  if (unlent == spare_.end()) return;
  const Handle kept = *unlent;
  std::erase_if(spare_, [&](const Handle& one) { return one != kept && !is_lent(one); });
}

std::span<float> Versions::advance() {
  if (previous_) spare_.push_back(std::move(previous_));
  Handle next = take();
  forget_spares();
  previous_ = std::exchange(current_, std::move(next));
  return current_->values;
}

std::span<float> Versions::change() {
  if (is_lent(current_)) {
    Handle next = take();
    forget_spares();
    spare_.push_back(std::exchange(current_, std::move(next)));
  }
  return current_->values;
}

}  // namespace muster::ps
