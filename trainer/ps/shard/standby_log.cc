#include "trainer/ps/shard/standby_log.h"

#include <algorithm>
#include <utility>

namespace muster::ps {

void StandbyLog::start(uint64_t step) {
  updates_.clear();
  acknowledged_ = step;
  mode_ = Mode::behind;
}

void StandbyLog::stop() {
  updates_.clear();
  spare_.clear();
  mode_ = Mode::off;
}

StandbyLog::Update& StandbyLog::add(size_t floats) {
  const auto spare = std::ranges::find_if_not(
      spare_, [](const Update& update) { return update.gradients.is_lent(); });
  if (spare == spare_.end()) {
    updates_.emplace_back().gradients = Lendable(compute::Floats(floats));
  } else {
    updates_.push_back(std::move(*spare));
    spare_.erase(spare);
    updates_.back().header.Clear();
  }
  return updates_.back();
}

const StandbyLog::Update* StandbyLog::find(uint64_t step) const {
  if (step < acknowledged_ || step - acknowledged_ >= updates_.size()) return nullptr;
  return &updates_[step - acknowledged_];
}

void StandbyLog::acknowledge(uint64_t step) {
  for (; acknowledged_ < step && !updates_.empty(); ++acknowledged_) {
    spare_.push_back(std::move(updates_.front()));
    updates_.pop_front();
  }
}

bool StandbyLog::settles(uint64_t step) const {
  if (mode_ == Mode::off) return true;
  return step - acknowledged_ <= (mode_ == Mode::together ? 0 : kMostBehind);
}

}  // namespace muster::ps
