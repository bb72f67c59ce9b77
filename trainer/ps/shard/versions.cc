#include "trainer/ps/shard/versions.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::ps {

void Versions::load(compute::Floats values, int spares,
                    std::shared_ptr<compute::FloatMemory> memory) {
  memory_ = std::move(memory);
  current_ = Lendable(std::move(values), memory_);
  previous_ = {};
  spare_.clear();
  for (int i = 0; i < spares; ++i) spare_.push_back(make());
}

Lendable::Loan Lendable::lend() const {
  if (!buffer_) return nullptr;
  buffer_->loans.fetch_add(1, std::memory_order_relaxed);
  return {&buffer_->values, [buffer = buffer_](const compute::Floats*) {
            buffer->loans.fetch_sub(1, std::memory_order_release);
          }};
}

Lendable Versions::make() const {
  const compute::CacheLineAllocator<float> allocator(memory_.get());
  return Lendable(compute::Floats(current_.values().size(), allocator), memory_);
}

// Takes the latest spare that is not lent: it may still be in the cache.
Lendable Versions::take() {
  const auto found = std::find_if_not(spare_.rbegin(), spare_.rend(),
                                      [](const Lendable& one) { return one.is_lent(); });
  if (found == spare_.rend()) return make();
  Lendable taken = std::move(*found);
  spare_.erase(std::next(found).base());
  return taken;
}

// Frees all unlent spares but one, which the next loans will need.
void Versions::forget_spares() {
  const auto unlent = std::ranges::find_if_not(spare_, &Lendable::is_lent);
  if (unlent == spare_.end()) return;
  const Lendable kept = *unlent;
  std::erase_if(spare_, [&](const Lendable& one) { return one != kept && !one.is_lent(); });
}

std::span<float> Versions::advance() {
  if (previous_) spare_.push_back(std::move(previous_));
  Lendable next = take();
  forget_spares();
  previous_ = std::exchange(current_, std::move(next));
  return current_.values();
}

std::span<float> Versions::change() {
  if (current_.is_lent()) {
    Lendable next = take();
    forget_spares();
    spare_.push_back(std::exchange(current_, std::move(next)));
  }
  return current_.values();
}

}  // namespace muster::ps
