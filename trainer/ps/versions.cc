#include "trainer/ps/versions.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace muster::ps {

void Versions::load(compute::Floats values) {
  auto loaded = std::make_shared<Buffer>();
  loaded->values = std::move(values);
  current_ = std::move(loaded);
  previous_.reset();
  spare_.clear();
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

Versions::Handle Versions::take() {
  Handle taken;
  const auto found = std::ranges::find_if_not(spare_, is_lent);
  if (found != spare_.end()) {
    taken = std::move(*found);
    spare_.erase(found);
  } else {
    taken = std::make_shared<Buffer>();
    taken->values.resize(current_->values.size());
  }
  return taken;
}

std::span<float> Versions::advance() {
  if (previous_) spare_.push_back(std::move(previous_));
  Handle next = take();
  std::erase_if(spare_, std::not_fn(is_lent));
  previous_ = std::exchange(current_, std::move(next));
  return current_->values;
}

std::span<float> Versions::change() {
  if (is_lent(current_)) {
    Handle next = take();
    std::erase_if(spare_, std::not_fn(is_lent));
    spare_.push_back(std::exchange(current_, std::move(next)));
  }
  return current_->values;
}

}  // namespace muster::ps
